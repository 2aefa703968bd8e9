"""Keeps the CDI specifications of this node's GPUs written, so that containers can start at any time.

They are written before kubelet is told of a GPU, again when what they say changes, and looked at before every start of
a container: somebody may have emptied the folder. The file of a GPU that vanished stays, because pods may have recorded
its devices. A folder that cannot be written keeps nobody from registering: running pods would be lost by that, while a
container that starts waits in PreStartContainer.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NoReturn

from cta_group_core.errors import GpuRefused
from cta_group_core.ids import GpuUuid
from cta_group_plugin.answers import CdiRules, Rules
from cta_group_plugin.cdi import file_name, specification
from cta_group_plugin.charge import while_followed
from cta_group_plugin.driver_threads import DriverThread
from cta_group_plugin.errors import CdiUnavailable
from cta_group_plugin.inventory import ServedGpu
from cta_group_plugin.logs import EventLog
from cta_group_plugin.ports import CdiFolder
from cta_group_plugin.state import NodeState

_log = EventLog(__name__)

_LOOK_SECONDS: Final = 10.0
_WRITE_SECONDS: Final = 1.0
"""A file system that needs longer counts as one that cannot be written, until it answers."""


class SpecificationKeeper:
    """The one writer of this process' specifications."""

    def __init__(self, state: NodeState, folder: CdiFolder, rules: Rules, cdi: CdiRules) -> None:
        self._state = state
        self._folder = folder
        self._rules = rules
        self._cdi = cdi
        self._thread = DriverThread("cdi")
        self._one_at_a_time = asyncio.Lock()
        self._writing: asyncio.Future[None] | None = None

    async def ensure(self, gpus: Sequence[ServedGpu]) -> None:
        """Return when the specifications of these GPUs are there; raises CdiUnavailable with the reason."""
        problems = await self._keep(gpus)
        for problem in problems.values():
            if problem:
                raise CdiUnavailable(problem)

    async def run(self) -> NoReturn:
        """Write at each change of the GPUs, and look at the files from time to time."""
        try:
            view = self._state.view
            while True:
                await while_followed(self._state)
                if view.offer.served:
                    self._learn(await self._keep(view.offer.served))
                try:
                    async with asyncio.timeout(_LOOK_SECONDS):
                        offer = view.offer
                        while view.offer == offer:
                            view = await self._state.change_after(view)
                except TimeoutError:
                    pass
        finally:
            # The thread may be inside a call that hangs; the process does not wait for it.
            self._thread.end()

    def _learn(self, problems: Mapping[GpuUuid, str]) -> None:
        for uuid, problem in problems.items():
            if problem and problem != self._state.view.specification_problems.get(uuid):
                _log.warning("cdi_specification_not_written", gpu=uuid, problem=problem)
        self._state.learn_specifications({uuid: problem for uuid, problem in problems.items() if problem})

    async def _keep(self, gpus: Sequence[ServedGpu]) -> dict[GpuUuid, str]:
        """Write what differs; return the problem of each GPU, empty for none."""
        problems: dict[GpuUuid, str] = {}
        for gpu in gpus:
            try:
                text = specification(gpu, self._rules, self._cdi)
                await self._write({file_name(gpu.facts.uuid): text})
            except (GpuRefused, CdiUnavailable) as problem:
                problems[gpu.facts.uuid] = str(problem)
            else:
                problems[gpu.facts.uuid] = ""
        return problems

    async def _write(self, specifications: Mapping[str, str]) -> None:
        async with self._one_at_a_time:
            if self._writing and not self._writing.done():
                raise CdiUnavailable("an earlier write of a CDI specification still hangs")
            self._writing = self._thread.ask(partial(self._folder.keep, specifications))
            self._writing.add_done_callback(_heard)
            try:
                async with asyncio.timeout(_WRITE_SECONDS):
                    await asyncio.shield(self._writing)
            except TimeoutError:
                told = ", ".join(specifications)
                raise CdiUnavailable(f"{told}: not written within {_WRITE_SECONDS:g} s") from None


def _heard(writing: asyncio.Future[None]) -> None:
    """Take note of a failure that nobody waits for any more."""
    if not writing.cancelled():
        writing.exception()
