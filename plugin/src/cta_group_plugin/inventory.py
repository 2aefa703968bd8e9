"""Which GPUs of a node are served, in which units, and why the others are not. Pure: facts in, values out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from cta_group_core.errors import GpuRefused, UnknownComputeCapability
from cta_group_core.ids import UUID_TEXTS, GpuUuid, GroupId, IdTexts
from cta_group_core.links import NO_LINKS, GpuLinks
from cta_group_core.slices import Slice, slice_of
from cta_group_core.units import GpuUnits, Granularity, granularity_of, sm_count_of, units_of
from cta_group_plugin.gpu_choice import EVERY_GPU, GpuChoice, GpuOverride
from cta_group_plugin.ports import GpuFacts, Inventory
from cta_group_plugin.report import WithheldCause


@dataclass(frozen=True, slots=True)
class ServedGpu:
    """A GPU whose groups are offered."""

    facts: GpuFacts
    units: GpuUnits
    memory_total_mib: int
    """0: nobody knows it; such a GPU is served only where memory is not limited."""
    reserve_mib: int
    notice: str = ""
    """What people should know of it although it is served."""

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
    cause: WithheldCause = WithheldCause.UNSUPPORTED

    @property
    def sm_count(self) -> int:
        """SMs as far as the driver's answers agree; 0 where they do not tell."""
        try:
            return sm_count_of(self.facts.capability, self.facts.sm_sources)
        except GpuRefused:
            return 0


@dataclass(frozen=True)
class Offer:
    """All GPUs of the node, sorted into served and withheld, each in order of index."""

    served: tuple[ServedGpu, ...] = ()
    withheld: tuple[WithheldGpu, ...] = ()
    texts: IdTexts = UUID_TEXTS
    """By which texts kubelet is told of the groups."""
    links: GpuLinks = NO_LINKS
    """How close the GPUs are to each other."""
    by_uuid: Mapping[GpuUuid, ServedGpu] = field(init=False, compare=False)
    withheld_by_uuid: Mapping[GpuUuid, WithheldGpu] = field(init=False, compare=False)
    ids: Mapping[str, GroupId] = field(init=False, compare=False)
    """Every group offered, by its text, in a stable order: parsed once, because kubelet sends all of them each time."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_uuid", {gpu.facts.uuid: gpu for gpu in self.served})
        object.__setattr__(self, "withheld_by_uuid", {gpu.facts.uuid: gpu for gpu in self.withheld})
        ids = (GroupId(gpu.facts.uuid, number) for gpu in self.served for number in range(gpu.units.capacity))
        object.__setattr__(self, "ids", {self.texts.text_of(group_id): group_id for group_id in ids})

    def group_of(self, text: str) -> GroupId:
        """Return the group that kubelet names; raises InvalidText for a text that is none."""
        return self.ids.get(text) or self.texts.parse(text)


Owners = Mapping[GpuUuid, str]
"""Resources of other device plugins that serve a GPU, in words."""

_NOBODY_ELSE: Final[Owners] = MappingProxyType({})


def offer_of(
    inventory: Inventory,
    *,
    reserve_mib: int,
    choice: GpuChoice = EVERY_GPU,
    owners: Owners = _NOBODY_ELSE,
    texts: IdTexts = UUID_TEXTS,
    links: GpuLinks = NO_LINKS,
    limits_memory: bool = True,
) -> Offer:
    """Decide for each GPU of ``inventory``; ``reserve_mib`` of each is never given out.

    Without ``limits_memory`` a GPU is served even if its memory is not known: there is nothing to compute from it.
    """
    served: list[ServedGpu] = []
    withheld: list[WithheldGpu] = []
    for facts in sorted(inventory.gpus, key=lambda gpu: (gpu.index, gpu.uuid)):
        if not_ours := _not_ours(facts, choice, owners):
            withheld.append(not_ours)
            continue
        try:
            served.append(_served(facts, reserve_mib, choice.override_of(facts), limits_memory=limits_memory))
        except GpuRefused as refused:
            withheld.append(WithheldGpu(facts, str(refused)))
    return Offer(tuple(served), tuple(withheld), texts, links)


def _not_ours(facts: GpuFacts, choice: GpuChoice, owners: Owners) -> WithheldGpu | None:
    if why := choice.leaves_out(facts):
        return WithheldGpu(facts, why, WithheldCause.EXCLUDED)
    if facts.mig_enabled:
        why = "MIG mode is on; groups are offered of whole GPUs only: switch MIG off to share this one"
        return WithheldGpu(facts, why, WithheldCause.MIG)
    if (owner := owners.get(facts.uuid)) and not choice.claims(facts):
        why = (
            f"another device plugin serves this GPU as {owner}, and two would hand it out twice: take it from that "
            "plugin and name it in gpus.include, or leave it to it with gpus.exclude"
        )
        return WithheldGpu(facts, why, WithheldCause.OTHER_PLUGIN)
    return None


def _served(facts: GpuFacts, reserve_mib: int, override: GpuOverride | None, *, limits_memory: bool) -> ServedGpu:
    units = _units(facts, override)
    memory_mib = override.memory_mib if override and override.memory_mib else facts.memory_total_mib
    if memory_mib is None:
        why = "it shares the memory of the host" if facts.shares_host_memory else "the driver does not tell it"
        unknown = f"how much memory this GPU has is not known ({why})"
        if limits_memory:
            raise GpuRefused(
                f"{unknown}, so shares of it cannot be computed; say how much may be used by memoryMiBOverride in "
                "gpus.overrides, or limit no memory at all (enforcement.memory: false)"
            )
        return ServedGpu(facts, units, 0, 0, f"{unknown}, and nobody's is limited here")
    if memory_mib <= reserve_mib:
        raise GpuRefused(
            f"the memory of {memory_mib} MiB leaves nothing beside the reserve of {reserve_mib} MiB; lower the reserve"
        )
    return ServedGpu(facts, units, memory_mib, reserve_mib, _memory_notice(facts, memory_mib))


def _units(facts: GpuFacts, override: GpuOverride | None) -> GpuUnits:
    granularity = _granularity(facts, override)
    if override and override.sm_count:
        return units_of(override.sm_count, granularity)
    return units_of(sm_count_of(facts.capability, facts.sm_sources), granularity)


def _granularity(facts: GpuFacts, override: GpuOverride | None) -> Granularity:
    if override and override.granularity:
        return override.granularity
    try:
        return granularity_of(facts.capability)
    except UnknownComputeCapability as unknown:
        if override is None:
            raise
        raise UnknownComputeCapability(f"{unknown}; the override for {override.gpu} lacks some of them") from unknown


def _memory_notice(facts: GpuFacts, memory_mib: int) -> str:
    if not facts.shares_host_memory:
        return ""
    return f"host and GPU share one memory; {memory_mib} MiB of it count as the GPU's, and the host can take them too"
