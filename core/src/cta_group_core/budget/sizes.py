"""Which numbers of groups a workload could ask for instead, and the memory of each."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cta_group_core.errors import SliceTooSmall
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.vllm.memory import SliceMemory, for_weights_and_cache_mib
from cta_group_core.vllm.plan import Server

_SPARE = 1.25
"""A KV cache that was used to 40 % gets room for 50 %."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of one GPU that every kind of GPU takes on which the workload runs."""

    groups: int
    """What a pod asks for now."""
    allowed: tuple[int, ...] = ()
    """Ascending."""

    @classmethod
    def of(cls, groups: int, kinds: Collection[GpuKind]) -> "Sizes":
        """Return the sizes beside ``groups`` on the kinds that take it."""
        sets = [_sizes_on(kind) for kind in kinds if kind.takes(groups)]
        return cls(groups, tuple(sorted(set.intersection(*sets))) if sets else ())

    @property
    def is_part(self) -> bool:
        """Tell whether it is at most one GPU: what is said here is about one."""
        return self.groups in self.allowed

    def more(self) -> int | None:
        """Return about twice as much, or the largest size; None where it is the largest."""
        larger = [one for one in self.allowed if one > self.groups]
        return next((one for one in larger if one >= 2 * self.groups), larger[-1] if larger else None)

    def at_least(self, groups: float) -> int | None:
        """Return the smallest size that is so large."""
        return next((one for one in self.allowed if one >= groups), None)


def _sizes_on(kind: GpuKind) -> set[int]:
    units = kind.units
    return {*range(units.minimum, units.capacity + 1, units.step), units.capacity}


def smallest_for_memory(
    server: Server, sizes: Sequence[int], groups: int, kinds: Collection[GpuKind], cache_usage: float
) -> int | None:
    """Return the smallest size that holds the weights and the KV cache that was used, with a quarter to spare.

    None where the model's size or a GPU's memory is not known.
    """
    usable = [kind for kind in kinds if kind.takes(groups)]
    if server.size is None or not usable:
        return None
    found = [_smallest_on(kind, server, sizes, groups, cache_usage) for kind in usable]
    known = [one for one in found if one is not None]
    return max(known) if len(known) == len(found) else None


def _smallest_on(kind: GpuKind, server: Server, sizes: Sequence[int], groups: int, cache_usage: float) -> int | None:
    now = _cache_mib(kind, server, groups)
    if now is None:
        return None
    needed = cache_usage * now * _SPARE
    rooms = ((size, _cache_mib(kind, server, size)) for size in sizes)
    return next((size for size, room in rooms if room is not None and room > 0 and room >= min(needed, now)), None)


def _cache_mib(kind: GpuKind, server: Server, groups: int) -> int | None:
    """Return the MiB that are left for the KV cache beside the weights; None where nobody knows."""
    share = kind.share(groups)
    if share is None and kind.memory_mib:
        share = SliceMemory(kind.units.capacity, kind.memory_mib, kind.memory_mib, kind.product)
    if share is None or server.size is None:
        return None
    try:
        return for_weights_and_cache_mib(share, server.load(planned=True)) - server.size.weights_mib
    except SliceTooSmall:
        return None
