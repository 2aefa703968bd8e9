"""Well-known GPUs, for the simulated source, ``plan`` and tests. A real node never looks here: NVML is asked.

SM counts, cores and compute capability are the vendors' figures. Memory is what NVML typically shows for the product
(total and the driver's reserved part, MiB); drivers differ by some MiB.
"""

from dataclasses import dataclass

from cta_group_core.errors import InvalidText
from cta_group_core.units import ComputeCapability, GpuUnits, granularity_of, units_of


@dataclass(frozen=True, slots=True)
class GpuProfile:
    """One product as NVML would describe it."""

    name: str
    """Short name on the command line."""
    product: str
    """NVML's product name."""
    capability: ComputeCapability
    sm_count: int
    cuda_cores: int
    nvml_total_mib: int
    nvml_reserved_mib: int
    copy_engines: int | None
    """Copy engines of the whole-GPU instance profile; ``None`` where NVML does not tell (parts without MIG)."""
    pcie_generation: int
    pcie_width: int

    @property
    def memory_total_mib(self) -> int:
        """Memory as CUDA reports it: NVML's total less its reserved part."""
        return self.nvml_total_mib - self.nvml_reserved_mib

    @property
    def units(self) -> GpuUnits:
        """Units of this product."""
        return units_of(self.sm_count, granularity_of(self.capability))

    @property
    def has_mig(self) -> bool:
        """Tell whether the product answers questions about GPU instance profiles."""
        return self.copy_engines is not None


def _profile(  # noqa: PLR0917 - a table is read by columns
    name: str,
    product: str,
    capability: str,
    sms: int,
    cores: int,
    memory: tuple[int, int],
    engines: int | None,
    pcie: int,
) -> GpuProfile:
    return GpuProfile(
        name=name,
        product=product,
        capability=ComputeCapability.parse(capability),
        sm_count=sms,
        cuda_cores=cores,
        nvml_total_mib=memory[0],
        nvml_reserved_mib=memory[1],
        copy_engines=engines,
        pcie_generation=pcie,
        pcie_width=8 if "Laptop" in product else 16,
    )


_ALL = (
    _profile("h100-sxm", "NVIDIA H100 80GB HBM3", "9.0", 132, 16896, (81559, 551), 8, 5),
    _profile("h100-pcie", "NVIDIA H100 PCIe", "9.0", 114, 14592, (81559, 551), 8, 5),
    _profile("h200", "NVIDIA H200", "9.0", 132, 16896, (143771, 616), 8, 5),
    _profile("a100-40", "NVIDIA A100-SXM4-40GB", "8.0", 108, 6912, (40960, 624), 7, 4),
    _profile("a100-80", "NVIDIA A100-SXM4-80GB", "8.0", 108, 6912, (81920, 662), 7, 4),
    _profile("b200", "NVIDIA B200", "10.0", 148, 18944, (183359, 728), 16, 5),
    _profile("l4", "NVIDIA L4", "8.9", 58, 7424, (23034, 475), None, 4),
    _profile("l40s", "NVIDIA L40S", "8.9", 142, 18176, (46068, 602), None, 4),
    _profile("a10", "NVIDIA A10", "8.6", 72, 9216, (23028, 457), None, 4),
    _profile("t4", "Tesla T4", "7.5", 40, 2560, (15360, 430), None, 3),
    _profile("v100", "Tesla V100-SXM2-16GB", "7.0", 80, 5120, (16384, 233), None, 3),
    _profile("rtx-4090", "NVIDIA GeForce RTX 4090", "8.9", 128, 16384, (24564, 357), None, 4),
    _profile("rtx-4060-laptop", "NVIDIA GeForce RTX 4060 Laptop GPU", "8.9", 24, 3072, (8188, 225), None, 4),
)

PROFILES: dict[str, GpuProfile] = {profile.name: profile for profile in _ALL}
"""Every profile by its short name."""


def profile_named(name: str) -> GpuProfile:
    """Return the profile, or raise :class:`InvalidText` that lists the names."""
    try:
        return PROFILES[name]
    except KeyError:
        raise InvalidText(f"GPU profile {name!r} is not known; known: {', '.join(PROFILES)}") from None
