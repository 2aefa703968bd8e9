"""What a request on a GPU of a given product would get: the answer of ``kubectl cta plan``."""

from dataclasses import dataclass

from cta_group_core.errors import RequestNotAllowed
from cta_group_core.profiles import GpuProfile
from cta_group_core.slices import DEFAULT_RESERVE_MIB, slice_of


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """A slice of one GPU, with the numbers a person compares it by. Memory in MiB."""

    gpu: str
    groups: int
    capacity: int
    sm_count: int
    sm_granted: int
    sm_percent: int
    memory_mib: int
    minimum: int
    step: int

    def as_json(self) -> dict[str, str | int]:
        """Return the plan with the names it has on the command line and in documents."""
        return {
            "gpu": self.gpu,
            "groups": self.groups,
            "capacity": self.capacity,
            "smCount": self.sm_count,
            "smGranted": self.sm_granted,
            "smPercent": self.sm_percent,
            "memoryMiB": self.memory_mib,
            "minimum": self.minimum,
            "step": self.step,
        }


def plan_slice(profile: GpuProfile, groups: int, *, reserve_mib: int = DEFAULT_RESERVE_MIB) -> SlicePlan:
    """Return the plan for ``groups`` on one GPU, or raise :class:`RequestNotAllowed`."""
    _check(profile, groups, reserve_mib)
    units = profile.units
    share = slice_of(
        groups,
        units=units,
        capability=profile.capability,
        memory_total_mib=profile.memory_total_mib,
        reserve_mib=reserve_mib,
    )
    return SlicePlan(
        gpu=profile.name,
        groups=groups,
        capacity=units.capacity,
        sm_count=units.sm_count,
        sm_granted=share.sm_granted,
        sm_percent=share.sm_percent,
        memory_mib=share.memory_mib,
        minimum=units.minimum,
        step=units.step,
    )


def _check(profile: GpuProfile, groups: int, reserve_mib: int) -> None:
    """Refuse in words what a person may ask for, but no slice of this GPU can be."""
    gpu, units = f"{profile.name} ({profile.product})", profile.units
    if not 0 <= reserve_mib < profile.memory_total_mib:
        raise RequestNotAllowed(
            f"{gpu}: a reserve of {reserve_mib} MiB is not possible; it must be 0 or more, "
            f"and less than the GPU's {profile.memory_total_mib} MiB"
        )
    if not units.allows(groups):
        nearest = " or ".join(str(size) for size in units.nearest(groups))
        raise RequestNotAllowed(f"{gpu}: {groups} groups are not allowed: {units.allowed()}; nearest: {nearest}")
    if groups > units.capacity:
        raise RequestNotAllowed(
            f"{gpu}: {groups} groups are {groups // units.capacity} whole GPUs, and a plan is about one; "
            f"ask for {units.capacity} to see what each of them is"
        )
