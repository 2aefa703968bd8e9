"""Keeps what is known of the GPUs' health over a restart of this process, and notices what proves a repair.

Without a record a GPU with a fatal error would be healthy again with the next version of this program; without proof of
a repair one with a record would never be. A disk that is full or gone costs only the memory.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final, NoReturn, Protocol

from cta_group_core.errors import InvalidText
from cta_group_core.health.evidence import Epoch, ResetEvidence, evidence_between
from cta_group_core.health.record import HealthRecord, dump_record, load_record
from cta_group_core.health.state import GpuState
from cta_group_core.ids import GpuUuid
from cta_group_plugin.charge import while_followed
from cta_group_plugin.errors import StateUnavailable
from cta_group_plugin.health import Health
from cta_group_plugin.logs import EventLog
from cta_group_plugin.state import NodeState, NodeView

_log = EventLog(__name__)

_GATHER_SECONDS: Final = 0.2
"""Changes within this time are written together."""
_SHOWN_LETTERS: Final = 200
_GPU: Final = re.compile(r"GPU-[0-9A-Za-z-]+")


class HealthStore(Protocol):
    """A place for one text, and for a word of the people who look after the node. Every method blocks."""

    def load(self) -> str | None:
        """Return the text, ``None`` when none was ever saved. Raises StateUnavailable."""

    def save(self, text: str) -> None:
        """Replace the text at once. Raises StateUnavailable."""

    def is_kept(self) -> bool:
        """Tell whether what was saved is still there."""

    def take_word(self) -> str | None:
        """Return what a person left for us, once; ``None`` when there is nothing. Raises StateUnavailable."""


class RecordKeeper:
    """Writes the record when it changes and looks for proof of repairs every few seconds."""

    def __init__(
        self,
        state: NodeState,
        store: HealthStore,
        marks: Callable[[], Epoch],
        *,
        look_seconds: float = 5.0,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        """Look with ``marks``, which reads small files; ``on_failure`` is called whenever nothing can be kept."""
        self._state = state
        self._store = store
        self._marks = marks
        self._look_seconds = look_seconds
        self._on_failure = on_failure
        self._epoch = Epoch()
        self._written: HealthRecord | None = None
        self._works = True

    def recall(self) -> None:
        """Take up what an earlier process knew, less what was repaired since. Call it before the GPUs are asked."""
        try:
            text = self._store.load()
            record = load_record(text) if text is not None else HealthRecord(Epoch(), {})
        except (StateUnavailable, InvalidText) as problem:
            _log.warning("health_record_not_read", problem=problem)
            self._on_failure()
            record = HealthRecord(Epoch(), {})
        self._epoch = record.epoch
        # Who the supervisor is and how it does is asked anew.
        states: dict[GpuUuid, GpuState] = {uuid: replace(state, mps=None) for uuid, state in record.gpus.items()}
        self._state.recall_health(Health(self._state.view.health.rules, states))
        self._compare(self._marks())
        for uuid, fault in self._state.view.faults.items():
            _log.warning("gpu_fault_recalled", gpu=uuid, phase=fault.phase.value, reason=fault.reason)

    def learn_word(self, word: str) -> None:
        """Take what a person wrote on the node's object; another text than before says that a GPU was repaired."""
        self._compare(replace(self._epoch, repaired=word))

    async def run(self) -> NoReturn:
        """Look and write for ever."""
        while True:
            await while_followed(self._state)
            view = self._state.view
            await self._look()
            await self._write(view)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds):
                    await self._change_of_health(view)
            await asyncio.sleep(_GATHER_SECONDS)

    async def _change_of_health(self, view: NodeView) -> None:
        health = view.health
        while view.health.states == health.states:
            view = await self._state.change_after(view)

    async def _look(self) -> None:
        self._compare(await asyncio.to_thread(self._marks))
        try:
            word = await asyncio.to_thread(self._store.take_word)
        except StateUnavailable as problem:
            self._note_failure(problem)
        else:
            if word is not None:
                self._believe(word)

    def _compare(self, now: Epoch) -> None:
        """Act on what differs from before. What is not known now keeps what it was."""
        before = self._epoch
        self._epoch = Epoch(
            boot_id=now.boot_id or before.boot_id,
            driver_load=now.driver_load or before.driver_load,
            repaired=now.repaired or before.repaired,
        )
        evidence = evidence_between(before, self._epoch)
        for each in evidence:
            _log.info("repair_seen", evidence=each.value)
        if ResetEvidence.PERSON in evidence:
            self._believe(now.repaired or "")
        self._state.learn_repair([each for each in evidence if each is not ResetEvidence.PERSON])

    def _believe(self, word: str) -> None:
        """Take a person's word for the GPUs that it names, or for all when it names none."""
        named = {GpuUuid(uuid) for uuid in _GPU.findall(word)}
        _log.info("repair_said", word=word[:_SHOWN_LETTERS], gpus=", ".join(sorted(named)) or "all")
        self._state.learn_repair([ResetEvidence.PERSON], only=named)

    async def _write(self, view: NodeView) -> None:
        present = {gpu.uuid for gpu in view.inventory.gpus} if view.inventory else set(view.health.states)
        health = view.health.without_absent(present)
        record = HealthRecord(self._epoch, {uuid: replace(state, mps=None) for uuid, state in health.states.items()})
        if record == self._written and await asyncio.to_thread(self._store.is_kept):
            return
        try:
            await asyncio.to_thread(self._store.save, dump_record(record))
        except StateUnavailable as problem:
            self._note_failure(problem)
            return
        if not self._works:
            _log.info("health_record_written_again")
        self._works, self._written = True, record

    def _note_failure(self, problem: StateUnavailable) -> None:
        self._on_failure()
        if self._works:
            _log.warning("health_record_not_kept", problem=problem)
        self._works = False
