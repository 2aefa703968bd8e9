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
    units = profile.units
    try:
        share = slice_of(
            groups,
            units=units,
            capability=profile.capability,
            memory_total_mib=profile.memory_total_mib,
            reserve_mib=reserve_mib,
        )
    except RequestNotAllowed as refused:
        raise RequestNotAllowed(f"{profile.name} ({profile.product}): {refused}") from refused
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
