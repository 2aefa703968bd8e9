"""How many CTA groups a GPU has, and which requests it can serve.

One CTA group is one SM's worth of co-resident thread blocks. A GPU offers its SM count rounded down to the
alignment of its compute capability; what is left over is slack and never sold.
"""

import re
from dataclasses import dataclass
from typing import Self

from cta_group_core.errors import (
    ContradictoryGpu,
    InvalidText,
    RequestNotAllowed,
    SmCountConflict,
    SmCountUnknown,
    UnknownComputeCapability,
)


@dataclass(frozen=True, slots=True, order=True)
class ComputeCapability:
    """CUDA's version of the hardware, such as 9.0."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``major.minor``; raise :class:`InvalidText` for anything else."""
        if not re.fullmatch(r"[0-9]{1,2}\.[0-9]", text, re.ASCII):
            raise InvalidText(f"compute capability {text!r}: must look like 9.0")
        major, minor = text.split(".")
        return cls(major=int(major), minor=int(minor))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


_SMS_OF_A_PAIR = 2


@dataclass(frozen=True, slots=True)
class Granularity:
    """The three sizes of a compute capability, in groups (equal to SMs); alignment and minimum are whole steps."""

    alignment: int
    """Capacity is a multiple of this."""
    minimum: int
    """Smallest request."""
    step: int
    """A request is a multiple of this."""

    def __post_init__(self) -> None:
        if min(self.alignment, self.minimum, self.step) <= 0:
            raise ContradictoryGpu(f"{self}: all three must be above 0")
        if self.alignment % self.step or self.minimum % self.step:
            raise ContradictoryGpu(f"{self}: alignment and minimum must be multiples of the step")
        if self.step % _SMS_OF_A_PAIR:
            raise ContradictoryGpu(f"{self}: the step must be even, since the driver grants SMs in pairs")


# Source: CUDA programming guide, "Green contexts", table of minimum and alignment by compute capability; from 9.0
# on a thread-block cluster of 8 needs SMs in eights. 7.x has SM pairs (TPCs) and no static partitions.
_GRANULARITY_BY_MAJOR = {
    7: Granularity(alignment=2, minimum=2, step=2),
    8: Granularity(alignment=2, minimum=4, step=2),
    9: Granularity(alignment=8, minimum=8, step=8),
    10: Granularity(alignment=8, minimum=8, step=8),
    11: Granularity(alignment=8, minimum=8, step=8),
    12: Granularity(alignment=8, minimum=8, step=8),
}

# Source: CUDA samples, helper table of cores per SM, up to 12.1. Minor versions are listed one by one on purpose:
# 8.0 and 8.6 differ, so an unlisted one is unknown rather than like its neighbour.
_CORES_PER_SM = {
    (7, 0): 64,
    (7, 2): 64,
    (7, 5): 64,
    (8, 0): 64,
    (8, 6): 128,
    (8, 7): 128,
    (8, 9): 128,
    (9, 0): 128,
    (10, 0): 128,
    (10, 1): 128,
    (10, 3): 128,
    (11, 0): 128,
    (12, 0): 128,
    (12, 1): 128,
}


def granularity_of(capability: ComputeCapability) -> Granularity:
    """Return the sizes for a compute capability, or raise :class:`UnknownComputeCapability`."""
    if (capability.major, capability.minor) not in _CORES_PER_SM:
        known = ", ".join(f"{major}.{minor}" for major, minor in _CORES_PER_SM)
        raise UnknownComputeCapability(
            f"compute capability {capability} is not known (known: {known}); "
            "say smCountOverride, alignment, minimum and step of this product in gpus.overrides"
        )
    return _GRANULARITY_BY_MAJOR[capability.major]


def cores_per_sm(capability: ComputeCapability) -> int:
    """Return CUDA cores in one SM, or raise :class:`UnknownComputeCapability`."""
    granularity_of(capability)
    return _CORES_PER_SM[capability.major, capability.minor]


@dataclass(frozen=True, slots=True)
class SmCountSources:
    """What NVML says about the SM count. ``None`` where the call is not supported on that GPU."""

    profile_sms: int | None
    """multiprocessorCount of the largest GPU instance profile (answers with MIG off too)."""
    cuda_cores: int | None
    """nvmlDeviceGetNumGpuCores."""


# Source: MIG user guide, A100 profiles: its largest instance has 98 of the 108 SMs, while from Hopper on (measured on
# an H200) the largest one has them all. Before 9.0 it is no source: docs/decisions/0002-sm-count-on-ampere.md.
_LARGEST_PROFILE_HAS_EVERY_SM_FROM = ComputeCapability(9, 0)


def sm_count_of(capability: ComputeCapability, sources: SmCountSources) -> int:
    """Return the SM count that all available sources agree on.

    The instance profile is a source from compute capability 9.0 on; on Ampere MIG leaves some SMs out.
    Raises :class:`SmCountConflict` when they differ, :class:`SmCountUnknown` when none answers, and
    :class:`UnknownComputeCapability` where only the cores are known but not how many make an SM.
    """
    counts: dict[str, int] = {}
    if sources.profile_sms is not None and capability >= _LARGEST_PROFILE_HAS_EVERY_SM_FROM:
        counts["whole-GPU instance profile"] = sources.profile_sms
    if sources.cuda_cores is not None:
        counts["CUDA cores"] = _sms_from_cores(capability, sources.cuda_cores)
    if not counts:
        raise SmCountUnknown("NVML tells no SM count and no CUDA cores; set smCountOverride in gpus.overrides")
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} by the {source}" for source, count in counts.items())
        raise SmCountConflict(f"SM count differs by source: {told}; set smCountOverride in gpus.overrides")
    return next(iter(counts.values()))


def _sms_from_cores(capability: ComputeCapability, cuda_cores: int) -> int:
    per_sm = cores_per_sm(capability)
    sms, rest = divmod(cuda_cores, per_sm)
    if rest or sms <= 0:
        raise SmCountConflict(
            f"{cuda_cores} CUDA cores are not a positive multiple of the {per_sm} cores an SM of compute "
            f"capability {capability} has; set smCountOverride in gpus.overrides"
        )
    return sms


@dataclass(frozen=True, slots=True)
class GpuUnits:
    """What one GPU offers. Build it with :func:`units_of`.

    Numbers that contradict each other raise :class:`ContradictoryGpu`, also when they come from another program.
    """

    sm_count: int
    capacity: int
    """Groups that are sold: ``sm_count`` rounded down to the alignment."""
    minimum: int
    """Smallest request."""
    step: int

    def __post_init__(self) -> None:
        if self.step <= 0 or not 0 < self.minimum <= self.capacity <= self.sm_count:
            raise ContradictoryGpu(f"{self}: must be 0 < minimum <= capacity <= sm_count and 0 < step")
        if self.capacity % self.step or self.minimum % self.step:
            raise ContradictoryGpu(f"{self}: capacity and minimum must be multiples of the step")

    def is_whole(self, groups: int) -> bool:
        """Tell whether ``groups`` is this whole GPU (every SM, no MPS)."""
        return groups == self.capacity

    def allows_on_one(self, groups: int) -> bool:
        """Tell whether ``groups`` can be a request on one such GPU: a fraction of it, or the whole."""
        if self.is_whole(groups):
            return True
        return self.minimum <= groups < self.capacity and groups % self.step == 0

    def allows(self, groups: int) -> bool:
        """Tell whether ``groups`` is a fraction, a whole GPU or several whole GPUs of this kind."""
        if groups > self.capacity:
            return groups % self.capacity == 0
        return self.allows_on_one(groups)

    def check_fraction(self, groups: int) -> None:
        """Raise :class:`RequestNotAllowed` unless ``groups`` can be a request on one such GPU."""
        if not self.allows_on_one(groups):
            raise RequestNotAllowed(f"{groups} groups are not allowed on one GPU of {self.capacity}: {self.allowed()}")

    def allowed(self) -> str:
        """Say in words which requests are allowed."""
        whole = f"a multiple of {self.capacity} (whole GPUs)"
        if self.minimum == self.capacity:
            return f"ask for {whole}"
        return f"ask for {self.minimum} to {self.capacity} in steps of {self.step} (one GPU), or {whole}"

    def nearest(self, groups: int) -> tuple[int, ...]:
        """Return the allowed requests next below and next above ``groups``, which is not allowed itself."""
        step = self.step if groups < self.capacity else self.capacity
        below = groups - groups % step
        return tuple(size for size in (below, below + step) if self.allows(size)) or (self.minimum,)


def units_of(sm_count: int, granularity: Granularity) -> GpuUnits:
    """Return the units of a GPU with ``sm_count`` SMs (at least the alignment, else :class:`SmCountUnknown`)."""
    capacity = sm_count - sm_count % granularity.alignment
    if capacity <= 0:
        raise SmCountUnknown(f"an SM count of {sm_count} leaves no group at an alignment of {granularity.alignment}")
    return GpuUnits(
        sm_count=sm_count,
        capacity=capacity,
        minimum=min(granularity.minimum, capacity),
        step=granularity.step,
    )
