"""Which GPUs of a node are served, in which units, and why the others are not. Pure: facts in, values out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cta_group_core.errors import GpuRefused
from cta_group_core.ids import GpuUuid, GroupId
from cta_group_core.slices import Slice, slice_of
from cta_group_core.units import GpuUnits, granularity_of, sm_count_of, units_of
from cta_group_plugin.ports import GpuFacts, Inventory


@dataclass(frozen=True, slots=True)
class ServedGpu:
    """A GPU whose groups are offered."""

    facts: GpuFacts
    units: GpuUnits
    memory_total_mib: int
    reserve_mib: int

    def slice_of(self, groups: int) -> Slice:
        """Return what ``groups`` of this GPU mean; raises RequestNotAllowed for a size that it does not allow."""
        return slice_of(
            groups,
            units=self.units,
            capability=self.facts.capability,
            memory_total_mib=self.memory_total_mib,
            reserve_mib=self.reserve_mib,
        )


@dataclass(frozen=True, slots=True)
class WithheldGpu:
    """A GPU that is there and offers nothing."""

    facts: GpuFacts
    reason: str
    """A sentence that says why, and which setting helps where one does."""


@dataclass(frozen=True)
class Offer:
    """All GPUs of the node, sorted into served and withheld, each in order of index."""

    served: tuple[ServedGpu, ...] = ()
    withheld: tuple[WithheldGpu, ...] = ()
    by_uuid: Mapping[GpuUuid, ServedGpu] = field(init=False, compare=False)
    ids: Mapping[str, GroupId] = field(init=False, compare=False)
    """Every group offered, by its text, in a stable order: parsed once, because kubelet sends all of them each time."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_uuid", {gpu.facts.uuid: gpu for gpu in self.served})
        ids = (GroupId(gpu.facts.uuid, number) for gpu in self.served for number in range(gpu.units.capacity))
        object.__setattr__(self, "ids", {str(group_id): group_id for group_id in ids})


def offer_of(inventory: Inventory, *, reserve_mib: int) -> Offer:
    """Decide for each GPU of ``inventory``; ``reserve_mib`` of each is never given out."""
    served: list[ServedGpu] = []
    withheld: list[WithheldGpu] = []
    for facts in sorted(inventory.gpus, key=lambda gpu: (gpu.index, gpu.uuid)):
        try:
            served.append(_served(facts, reserve_mib))
        except GpuRefused as refused:
            withheld.append(WithheldGpu(facts, str(refused)))
    return Offer(tuple(served), tuple(withheld))


def _served(facts: GpuFacts, reserve_mib: int) -> ServedGpu:
    if facts.mig_enabled:
        raise GpuRefused("MIG mode is on; groups are offered of whole GPUs only: switch MIG off to share this one")
    granularity = granularity_of(facts.capability)
    units = units_of(sm_count_of(facts.capability, facts.sm_sources), granularity)
    if facts.memory_total_mib is None:
        raise GpuRefused("the driver does not tell this GPU's memory, so shares of it cannot be computed")
    if facts.memory_total_mib <= reserve_mib:
        raise GpuRefused(
            f"the memory of {facts.memory_total_mib} MiB leaves nothing beside the reserve of {reserve_mib} MiB; "
            "lower the reserve"
        )
    return ServedGpu(facts, units, facts.memory_total_mib, reserve_mib)
