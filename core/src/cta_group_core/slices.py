"""What a request for n groups of one GPU means in SMs, percent and memory. Integers only."""

from dataclasses import dataclass

from cta_group_core.units import ComputeCapability, GpuUnits

DEFAULT_RESERVE_MIB = 1024
"""Memory of a GPU that is never given out: the MPS server and its contexts live in it."""

_FULL_PERCENT = 100
# Measured on an H200 (driver 580): a client never sees fewer than 8 SMs, whatever its percentage. On parts without
# thread-block clusters an SM pair is the smallest (a T4 at 5 % shows 2 of its 40 SMs).
_SMALLEST_GRANT_WITH_CLUSTERS = 8
_SMALLEST_GRANT = 2
_FIRST_MAJOR_WITH_CLUSTERS = 9


@dataclass(frozen=True, slots=True)
class Slice:
    """The share of one GPU that belongs to ``groups`` groups."""

    groups: int
    capacity: int
    sm_percent: int
    """CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, 1 to 100."""
    sm_granted: int
    """SMs that the driver makes visible at that percentage."""
    memory_mib: int
    """CUDA_MPS_PINNED_DEVICE_MEM_LIMIT."""

    @property
    def is_whole(self) -> bool:
        """A whole GPU runs without MPS; its percentage and memory are facts, not limits."""
        return self.groups == self.capacity


def slice_of(
    groups: int, *, units: GpuUnits, capability: ComputeCapability, memory_total_mib: int, reserve_mib: int
) -> Slice:
    """Return the slice for ``groups`` (at most one GPU) or raise RequestNotAllowed.

    ``memory_total_mib`` is what CUDA reports: NVML's total less its reserved part.
    """
    units.check_fraction(groups)
    percent = percent_of(groups, units)
    return Slice(
        groups=groups,
        capacity=units.capacity,
        sm_percent=percent,
        sm_granted=units.sm_count if units.is_whole(groups) else granted_sms(percent, units.sm_count, capability),
        memory_mib=memory_share_mib(groups, units.capacity, memory_total_mib, reserve_mib),
    )


def percent_of(groups: int, units: GpuUnits) -> int:
    """Return the smallest whole percentage at which the driver grants at least ``groups`` SMs.

    The driver truncates, so a decimal that is rounded down loses an SM pair (24.24 % of 132 gives 30, 25 % gives 32).
    """
    if units.is_whole(groups):
        return _FULL_PERCENT
    return -(-_FULL_PERCENT * groups // units.sm_count)


def granted_sms(percent: int, sm_count: int, capability: ComputeCapability) -> int:
    """Return the SMs a client sees at ``percent``: rounded down to an even number, never below the smallest grant.

    Measured rule of the driver (H200, driver 580, percentages 1 to 100).
    """
    smallest = _SMALLEST_GRANT_WITH_CLUSTERS if capability.major >= _FIRST_MAJOR_WITH_CLUSTERS else _SMALLEST_GRANT
    if percent >= _FULL_PERCENT:
        return sm_count
    share = percent * sm_count // _FULL_PERCENT
    return max(smallest, share - share % 2)


def memory_share_mib(groups: int, capacity: int, memory_total_mib: int, reserve_mib: int) -> int:
    """Return ``floor((total - reserve) * groups / capacity)``: the shares of a full GPU never exceed it."""
    return max(0, memory_total_mib - reserve_mib) * groups // capacity
