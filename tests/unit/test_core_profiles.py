"""Well-known GPUs: their figures agree with each other and with what was recorded."""

import pytest

from cta_group_core.errors import InvalidText
from cta_group_core.profiles import PROFILES, GpuProfile, profile_named
from cta_group_core.units import SmCountSources, cores_per_sm, sm_count_of

every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


@pytest.mark.parametrize(
    ("name", "capacity", "minimum", "step"),
    [
        ("h100-sxm", 128, 8, 8),
        ("h100-pcie", 112, 8, 8),
        ("h200", 128, 8, 8),
        ("a100-40", 108, 4, 2),
        ("a100-80", 108, 4, 2),
        ("b200", 144, 8, 8),
        ("l4", 58, 4, 2),
        ("l40s", 142, 4, 2),
        ("a10", 72, 4, 2),
        ("t4", 40, 2, 2),
        ("v100", 80, 2, 2),
        ("rtx-4090", 128, 4, 2),
        ("rtx-4060-laptop", 24, 4, 2),
    ],
)
def test_units_of_each_profile(name: str, capacity: int, minimum: int, step: int) -> None:
    """Each profile offers the groups that the documents promise for it."""
    units = profile_named(name).units
    assert (units.capacity, units.minimum, units.step) == (capacity, minimum, step)


def test_table_above_names_every_profile() -> None:
    """A profile that is added needs a line in the table of promises."""
    assert len(PROFILES) == 13


@every_profile
def test_both_sources_of_the_sm_count_agree(profile: GpuProfile) -> None:
    """SMs and CUDA cores of a profile describe the same chip, so that a simulated GPU is one that could be served."""
    sources = SmCountSources(profile_sms=profile.sm_count, cuda_cores=profile.cuda_cores)
    assert sm_count_of(profile.capability, sources) == profile.sm_count
    assert profile.cuda_cores == profile.sm_count * cores_per_sm(profile.capability)


@every_profile
def test_figures_are_possible(profile: GpuProfile) -> None:
    """Reserved memory is a small part of the total, and the link is one that exists."""
    assert 0 < profile.nvml_reserved_mib < profile.nvml_total_mib // 10
    assert profile.memory_total_mib + profile.nvml_reserved_mib == profile.nvml_total_mib
    assert profile.pcie_width in {8, 16}
    assert profile.pcie_generation in {3, 4, 5}


def test_h200_is_the_recorded_one() -> None:
    """The H200 has the figures that a real one answered: 150754820096 bytes, of which 644939776 are reserved."""
    h200 = PROFILES["h200"]
    assert (h200.product, str(h200.capability)) == ("NVIDIA H200", "9.0")
    assert (h200.sm_count, h200.cuda_cores, h200.copy_engines) == (132, 16896, 8)
    assert h200.nvml_total_mib == 150754820096 // 2**20
    assert h200.memory_total_mib == 143155


@pytest.mark.parametrize(("name", "has_mig"), [("h100-sxm", True), ("a100-40", True), ("l4", False), ("t4", False)])
def test_mig_is_known_by_the_copy_engines(name: str, has_mig: bool) -> None:  # noqa: FBT001 - a column of the table
    """Only products that can be partitioned answer for their copy engines."""
    assert profile_named(name).has_mig is has_mig


@pytest.mark.parametrize("name", ["", "h100", "H200", "h200 ", "NVIDIA H200"])
def test_unknown_profile_lists_the_known_ones(name: str) -> None:
    """A name that is no profile is refused, named, and answered with every name that is one."""
    with pytest.raises(InvalidText) as refused:
        profile_named(name)
    assert repr(name) in str(refused.value)
    assert all(known in str(refused.value) for known in PROFILES)
