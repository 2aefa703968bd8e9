"""By which text kubelet knows each group of this node, and what its ids mean, over restarts and changes of the setting.

An id in short form needs the number of its GPU, which must stay that GPU's for as long as any pod holds such an id: the
driver's index does not, since it changes when a GPU vanishes. So each GPU gets a number once, kept in a file of the
host. When the file is lost, the numbers that matter are found again in kubelet's record, which has with the ids of each
container the answer that names their GPUs; GPUs without pods get new ones.

When the form is changed while pods run, kubelet goes on knowing their groups by the old texts, and would hand a group
out again under a new one. So every group keeps the text that kubelet knows until nobody holds it, and until kubelet was
asked about that after this process had registered: what a process of before still gave out is known by then. An id that
kubelet took meanwhile by the old text decides which text its group has.
"""

import asyncio
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol

from cta_group_core.errors import InvalidText
from cta_group_core.ids import UUID_TEXTS, GpuUuid, GroupId, IdForm, IdTexts, ShortId, numbers_with
from cta_group_plugin.errors import StateUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.ports import GpuFacts, PodDevices

_log: Final = EventLog(__name__)


class NumberStore(Protocol):
    """What keeps the numbers of the GPUs. Blocks; raises StateUnavailable."""

    def load_numbers(self) -> Mapping[GpuUuid, int]:
        """Return what was kept; nothing when nothing ever was."""

    def keeps_numbers(self) -> bool:
        """Tell whether what was kept is still there."""

    def save_numbers(self, numbers: Mapping[GpuUuid, int]) -> None:
        """Keep these instead."""


class IdBook:
    """The texts of this node's groups: read by everybody, changed by one at a time."""

    def __init__(self, form: IdForm = IdForm.UUID, store: NumberStore | None = None) -> None:
        """``form`` is how groups are written that kubelet does not know; without a store numbers are indexes."""
        self._store = store
        self._works = True
        self._taken: frozenset[int] = frozenset()
        self._texts = replace(UUID_TEXTS, form=form)

    @property
    def texts(self) -> IdTexts:
        """The newest value."""
        return self._texts

    def meaning_of(self, text: str) -> GroupId:
        """Return the group that an id means; raises InvalidText."""
        return self._texts.parse(text)

    def recall(self, record: Iterable[PodDevices], registered: Iterable[str] = ()) -> None:
        """Read what is kept of the numbers, and find those that are missing in kubelet's record. Blocks.

        ``registered`` are all ids that kubelet knows, held or not.
        """
        record = tuple(record)
        try:
            numbers = dict(self._store.load_numbers()) if self._store else {}
        except StateUnavailable as problem:
            _log.warning("gpu_numbers_lost", problem=problem)
            numbers = {}
        for container in record:
            numbers |= _missing_numbers(container, numbers)
        self._texts = replace(self._texts, numbers=numbers)
        self._taken = frozenset(number for container in record for number in _gpu_numbers(container))
        self.keep({*registered, *(text for container in record for text in container.ids)})

    async def lacks(self, gpus: Iterable[GpuFacts]) -> bool:
        """Tell whether one of these GPUs needs a number and has none, or numbers that were kept are not any more."""
        if self._texts.form is IdForm.SHORT and any(gpu.uuid not in self._texts.numbers for gpu in gpus):
            return True
        if self._store is None or not self._texts.numbers:
            return False
        return not await asyncio.to_thread(self._store.keeps_numbers)

    async def number(self, gpus: Iterable[GpuFacts]) -> None:
        """Give a number to each GPU that has none, kept before any id is written with it."""
        numbers = numbers_with(self._texts.numbers, ((gpu.index, gpu.uuid) for gpu in gpus), taken=self._taken)
        if self._store:
            try:
                await asyncio.to_thread(self._store.save_numbers, numbers)
                self._works = True
            except StateUnavailable as problem:
                if self._works:
                    _log.warning("gpu_numbers_not_kept", problem=problem)
                self._works = False
        self._texts = replace(self._texts, numbers=numbers)

    def keep(self, known: Iterable[str]) -> None:
        """Note texts by which kubelet knows groups: those of the other form stay what they are."""
        kept = self._of_the_other_form(known) | dict(self._texts.kept)
        self._become(kept)

    def groups_in(self, texts: Iterable[str]) -> frozenset[GroupId]:
        """Return the groups that ids mean, without those that mean none."""
        found: set[GroupId] = set()
        for text in texts:
            with suppress(InvalidText):
                found.add(self._texts.parse(text))
        return frozenset(found)

    def adopt(self, taken: Iterable[str]) -> None:
        """Note texts by which kubelet has just taken groups that nobody else holds, whatever they were before."""
        taken = frozenset(taken)
        others = self._of_the_other_form(taken)
        usual = {self._texts.parse(text) for text in taken} - others.keys()
        self._become({group: text for group, text in self._texts.kept.items() if group not in usual} | others)

    def release(self, held: Container[GroupId]) -> None:
        """Write groups in the usual form that nobody holds any more."""
        self._become({group: text for group, text in self._texts.kept.items() if group in held})

    def _of_the_other_form(self, texts: Iterable[str]) -> dict[GroupId, str]:
        found: dict[GroupId, str] = {}
        for text in texts:
            if not self._texts.is_usual(text):
                # Another plugin may have given it out under our name before, or nobody knows its GPU.
                with suppress(InvalidText):
                    found[self._texts.parse(text)] = text
        return found

    def _become(self, kept: Mapping[GroupId, str]) -> None:
        if kept != self._texts.kept:
            _log.info("ids_kept", groups=len(kept), reason="kubelet knows them by the other form")
            self._texts = replace(self._texts, kept=kept)


def _gpu_numbers(container: PodDevices) -> set[int]:
    return {short.gpu_number for text in container.ids if (short := ShortId.parse(text))}


def _missing_numbers(container: PodDevices, known: Mapping[GpuUuid, int]) -> dict[GpuUuid, int]:
    """Return the numbers that a container's ids and its GPUs tell together, and that are not known.

    With several GPUs it is not said which has which number. It does not matter: the container has all of them whole.
    """
    numbers = sorted(_gpu_numbers(container) - set(known.values()))
    gpus = [gpu for gpu in container.gpus if gpu not in known]
    return dict(zip(gpus, numbers, strict=True)) if len(gpus) == len(numbers) else {}
