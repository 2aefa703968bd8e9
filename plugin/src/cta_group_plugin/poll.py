"""One look at all GPUs of the node: their facts, their health and who uses them.

A GPU that hangs costs this look at most the time limit of one question, and the next ones nothing: it is left out until
it answers. So is one about which the driver should not be asked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from cta_group_core.health.inputs import PollFailed, Seen
from cta_group_core.ids import GpuUuid
from cta_group_plugin.driver_threads import Asker
from cta_group_plugin.errors import DriverError, DriverGone, DriverHangs, GpuLost
from cta_group_plugin.gpu_source import GpuSource, Survey, inventory_of
from cta_group_plugin.health import seen_in_answer, seen_in_silence
from cta_group_plugin.occupants import GpuLook
from cta_group_plugin.ports import BrokenGpu, GpuFacts, Inventory

_NODE = "the node"


@dataclass(frozen=True, slots=True)
class Poll:
    """What one look found."""

    inventory: Inventory
    """A GPU that was not asked is in it as it was before."""
    seen: Mapping[GpuUuid, Sequence[Seen]]
    """What each GPU's answers say of its health; nothing for one that was not asked."""
    looks: Mapping[GpuUuid, GpuLook]
    """Who uses each GPU, of those that told it."""

    @property
    def listed(self) -> set[GpuUuid]:
        """Every GPU that the driver lists, as far as its UUID is known."""
        named = {gpu.uuid for gpu in self.inventory.broken if gpu.uuid}
        return {gpu.uuid for gpu in self.inventory.gpus} | named


@dataclass(slots=True)
class _Found:
    gpus: list[GpuFacts | BrokenGpu] = field(default_factory=list)
    seen: dict[GpuUuid, Sequence[Seen]] = field(default_factory=dict)
    looks: dict[GpuUuid, GpuLook] = field(default_factory=dict)


class Poller:
    """Looks, and remembers what each GPU was when it answered last."""

    def __init__(
        self,
        source: GpuSource,
        asker: Asker,
        may_ask: Callable[[GpuUuid | None], bool],
        look: Callable[[GpuUuid], GpuLook],
    ) -> None:
        """``look`` finds out who uses a GPU; it blocks as the source does, and is called where that is."""
        self._source = source
        self._look = look
        self._asker = asker
        self._may_ask = may_ask
        self._known: dict[int, GpuFacts] = {}
        self._count = 0

    async def poll(self) -> Poll:
        """Look at every GPU. Raises DriverError when the driver does not even list them, DriverGone for good."""
        survey = await self._asker.ask(_NODE, self._source.survey)
        if survey.count != self._count:
            # The indexes may mean other GPUs now; what is known of them by index is worth nothing.
            self._known.clear()
        self._count = survey.count
        found = _Found()
        for index in range(survey.count):
            await self._look_at(index, found)
        return _poll(survey, found)

    async def _look_at(self, index: int, found: _Found) -> None:
        before = self._known.get(index)
        if before and not self._may_ask(before.uuid):
            found.gpus.append(before)
            return
        about = before.uuid if before else f"GPU {index}"
        try:
            gpu = await self._asker.ask(about, partial(self._source.read, index))
        except DriverHangs as hangs:
            found.gpus.append(before or BrokenGpu(index, None, str(hangs)))
            if before:
                found.seen[before.uuid] = (PollFailed(str(hangs)),)
            return
        found.gpus.append(gpu)
        if isinstance(gpu, GpuFacts):
            self._known[index] = gpu
            await self._look_inside(gpu.uuid, found)
        elif gpu.uuid:
            found.seen[gpu.uuid] = seen_in_silence(gpu)

    async def _look_inside(self, gpu: GpuUuid, found: _Found) -> None:
        try:
            vitals = await self._asker.ask(gpu, partial(self._source.vitals, gpu))
            found.looks[gpu] = await self._asker.ask(gpu, partial(self._look, gpu))
        except DriverGone:
            raise
        except DriverError as problem:
            found.seen[gpu] = seen_in_silence(BrokenGpu(-1, gpu, str(problem), is_lost=isinstance(problem, GpuLost)))
        else:
            found.seen[gpu] = seen_in_answer(vitals)


def _poll(survey: Survey, found: _Found) -> Poll:
    return Poll(inventory_of(survey, found.gpus), found.seen, found.looks)
