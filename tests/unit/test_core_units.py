"""How many groups a GPU has, and which requests it serves."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import (
    ContradictoryGpu,
    GpuRefused,
    InvalidText,
    RequestNotAllowed,
    SmCountConflict,
    SmCountUnknown,
    UnknownComputeCapability,
)
from cta_group_core.units import (
    ComputeCapability,
    GpuUnits,
    Granularity,
    SmCountSources,
    cores_per_sm,
    granularity_of,
    sm_count_of,
    units_of,
)
from gpu_strategies import H200, KNOWN_CAPABILITIES, T400, capabilities, sizes_on_one

HOPPER = ComputeCapability(9, 0)
AMPERE = ComputeCapability(8, 0)
TURING = ComputeCapability(7, 5)


@pytest.mark.parametrize(
    ("capability", "sm_count", "capacity", "minimum", "step"),
    [
        ("9.0", 132, 128, 8, 8),  # H100 SXM, H200
        ("9.0", 114, 112, 8, 8),  # H100 PCIe
        ("10.0", 148, 144, 8, 8),  # B200
        ("12.0", 170, 168, 8, 8),  # RTX 5090
        ("8.0", 108, 108, 4, 2),  # A100
        ("8.9", 24, 24, 4, 2),  # RTX 4060 Laptop
        ("8.9", 128, 128, 4, 2),  # RTX 4090
        ("8.9", 2, 2, 2, 2),  # smaller than the smallest request: only as a whole
        ("7.5", 40, 40, 2, 2),  # T4
        ("7.5", 6, 6, 2, 2),  # T400
    ],
)
def test_units_of_known_gpus(capability: str, sm_count: int, capacity: int, minimum: int, step: int) -> None:
    """Capacity, minimum and step of a GPU follow from its SM count and compute capability."""
    units = units_of(sm_count, granularity_of(ComputeCapability.parse(capability)))
    assert units == GpuUnits(sm_count=sm_count, capacity=capacity, minimum=minimum, step=step)


@given(capabilities, st.integers(8, 400))
def test_capacity_is_aligned_and_never_above_the_sms(capability: ComputeCapability, sm_count: int) -> None:
    """Capacity is the largest multiple of the alignment that the SMs hold."""
    granularity = granularity_of(capability)
    units = units_of(sm_count, granularity)
    assert units.capacity % granularity.alignment == 0
    assert 0 <= sm_count - units.capacity < granularity.alignment


@given(capabilities, st.integers(8, 200), st.integers(-8, 1000))
def test_allowed_requests_are_those_counted_up(capability: ComputeCapability, sm_count: int, groups: int) -> None:
    """A request is allowed exactly if it is minimum plus steps, the whole GPU, or a multiple of it."""
    units = units_of(sm_count, granularity_of(capability))
    on_one = groups in sizes_on_one(units)
    multiple = groups in range(2 * units.capacity, 1001, units.capacity)
    assert units.allows_on_one(groups) is on_one
    assert units.allows(groups) is (on_one or multiple)


@given(capabilities, st.integers(8, 200), st.integers(-8, 1000))
def test_the_check_refuses_exactly_what_is_not_allowed(
    capability: ComputeCapability, sm_count: int, groups: int
) -> None:
    """The check raises exactly where the question answers no, and names the number that was asked for."""
    units = units_of(sm_count, granularity_of(capability))
    if units.allows_on_one(groups):
        units.check_fraction(groups)
    else:
        with pytest.raises(RequestNotAllowed, match=rf"^{groups} groups"):
            units.check_fraction(groups)


@given(capabilities, st.integers(8, 200), st.integers(-8, 1000))
def test_nearest_requests_are_allowed_neighbours(capability: ComputeCapability, sm_count: int, groups: int) -> None:
    """The sizes proposed instead of a refused one are allowed, and no allowed size lies nearer on either side."""
    units = units_of(sm_count, granularity_of(capability))
    if units.allows(groups):
        return
    allowed = [size for size in range(1200) if units.allows(size)]
    below = [size for size in allowed if size < groups][-1:]
    above = [size for size in allowed if size > groups][:1]
    assert list(units.nearest(groups)) == below + above


def test_refusal_says_what_was_asked_and_what_is_allowed() -> None:
    """12 groups on an H200 are refused in words that name 12, the minimum, the step and the whole GPU."""
    with pytest.raises(RequestNotAllowed) as refused:
        H200.check_fraction(12)
    assert str(refused.value) == (
        "12 groups are not allowed on one GPU of 128: "
        "ask for 8 to 128 in steps of 8 (one GPU), or a multiple of 128 (whole GPUs)"
    )


def test_gpu_that_is_its_own_minimum_is_offered_as_a_whole_only() -> None:
    """A GPU of two SMs is not described by a range from 2 to 2."""
    assert units_of(2, granularity_of(AMPERE)).allowed() == "ask for a multiple of 2 (whole GPUs)"


@pytest.mark.parametrize("sm_count", [-8, 0, 7])
def test_too_few_sms_for_one_group_are_refused(sm_count: int) -> None:
    """A GPU whose SMs do not fill one alignment unit offers nothing, and says so."""
    with pytest.raises(SmCountUnknown, match=f"SM count of {sm_count} "):
        units_of(sm_count, granularity_of(HOPPER))


@pytest.mark.parametrize(
    ("sm_count", "capacity", "minimum", "step"),
    [
        (132, 136, 8, 8),  # more sold than there is
        (132, 128, 136, 8),  # nothing could be asked for
        (132, 128, 0, 8),
        (132, 128, 8, 0),  # would divide by zero
        (132, 0, 0, 0),
        (132, -8, 8, 8),
        (132, 126, 8, 8),  # a rest that no step reaches
        (132, 128, 12, 8),
    ],
)
def test_contradictory_units_cannot_be_built(sm_count: int, capacity: int, minimum: int, step: int) -> None:
    """Numbers of a GPU that cannot all be true raise where the value is built, as the GPU's own refusal."""
    with pytest.raises(ContradictoryGpu) as refused:
        GpuUnits(sm_count=sm_count, capacity=capacity, minimum=minimum, step=step)
    assert isinstance(refused.value, GpuRefused)
    assert f"capacity={capacity}" in str(refused.value)


@pytest.mark.parametrize(
    ("alignment", "minimum", "step"), [(0, 8, 8), (8, 0, 8), (8, 8, 0), (2, 8, 8), (8, 6, 4), (3, 3, 3)]
)
def test_contradictory_granularity_cannot_be_built(alignment: int, minimum: int, step: int) -> None:
    """Alignment and minimum are whole steps, steps are whole SM pairs; anything else raises."""
    with pytest.raises(ContradictoryGpu, match=re.escape(f"step={step}")):
        Granularity(alignment=alignment, minimum=minimum, step=step)


@pytest.mark.parametrize(
    ("capability", "profile_sms", "cuda_cores", "expected"),
    [
        (HOPPER, 132, 16896, 132),  # the H200 that was recorded: both sources
        (HOPPER, 132, None, 132),
        (HOPPER, None, 16896, 132),
        (ComputeCapability(8, 9), None, 3072, 24),  # no MIG, so no profile
        (AMPERE, 108, 6912, 108),  # 64 cores an SM
        (ComputeCapability(8, 6), None, 9216, 72),  # 128 cores an SM
        (TURING, None, 384, 6),
    ],
)
def test_sm_count_from_the_sources_that_answer(
    capability: ComputeCapability, profile_sms: int | None, cuda_cores: int | None, expected: int
) -> None:
    """One source is enough, and two must agree."""
    assert sm_count_of(capability, SmCountSources(profile_sms=profile_sms, cuda_cores=cuda_cores)) == expected


def test_sources_that_disagree_refuse_the_gpu() -> None:
    """Two different SM counts refuse the GPU in words that name both and the setting that helps."""
    with pytest.raises(
        SmCountConflict, match=r"132 by the .*profile, 114 by the CUDA cores; set smCountOverride in gpus\.overrides"
    ):
        sm_count_of(HOPPER, SmCountSources(profile_sms=132, cuda_cores=114 * 128))


@pytest.mark.parametrize("cuda_cores", [16897, 0, -128])
def test_cores_that_make_no_whole_sms_refuse_the_gpu(cuda_cores: int) -> None:
    """A core count that is no positive multiple of an SM's cores is never rounded."""
    with pytest.raises(SmCountConflict, match=f"^{cuda_cores} CUDA cores"):
        sm_count_of(HOPPER, SmCountSources(profile_sms=None, cuda_cores=cuda_cores))


def test_no_source_refuses_the_gpu() -> None:
    """Without any source the SM count is not guessed; the override setting is named."""
    with pytest.raises(SmCountUnknown, match=r"smCountOverride"):
        sm_count_of(HOPPER, SmCountSources(profile_sms=None, cuda_cores=None))


@pytest.mark.parametrize("text", ["8.8", "13.0", "6.1", "9.1", "0.0", "99.9"])
def test_unknown_compute_capability_is_never_guessed(text: str) -> None:
    """A compute capability in no table refuses the GPU and names the override setting, also beside known ones."""
    capability = ComputeCapability.parse(text)
    with pytest.raises(UnknownComputeCapability, match=rf"{re.escape(text)} is not known .*smCountOverride"):
        granularity_of(capability)
    with pytest.raises(UnknownComputeCapability):
        cores_per_sm(capability)
    with pytest.raises(UnknownComputeCapability):
        sm_count_of(capability, SmCountSources(profile_sms=None, cuda_cores=1280))


@pytest.mark.parametrize("capability", KNOWN_CAPABILITIES)
def test_cores_of_an_sm(capability: ComputeCapability) -> None:
    """An SM has 64 cores up to the first Ampere, and 128 from the second on."""
    assert cores_per_sm(capability) == (64 if capability <= AMPERE else 128)


@pytest.mark.parametrize("capability", KNOWN_CAPABILITIES)
def test_capability_reads_back_what_it_prints(capability: ComputeCapability) -> None:
    """The text form of a compute capability parses to the same value."""
    assert ComputeCapability.parse(str(capability)) == capability


@pytest.mark.parametrize("text", ["", "9", "9.", ".0", "9.0.1", "9,0", "-9.0", "9.00", "٩.0", "9.0\n", " 9.0"])
def test_other_text_is_no_capability(text: str) -> None:
    """Anything but major.minor in plain digits is refused, and named."""
    with pytest.raises(InvalidText, match=re.escape(repr(text))):
        ComputeCapability.parse(text)


def test_capabilities_compare_as_versions() -> None:
    """10.0 is newer than 9.0, which text would not know."""
    assert ComputeCapability.parse("10.0") > ComputeCapability.parse("9.0")


def test_t400_is_smaller_than_the_smallest_hopper_request() -> None:
    """The display card beside data-centre GPUs in later tests has the units they rely on."""
    assert (T400.capacity, T400.minimum, T400.step) == (6, 2, 2)
