"""What a request means in SMs, percent and memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import RequestNotAllowed
from cta_group_core.profiles import PROFILES, GpuProfile
from cta_group_core.slices import Slice, granted_sms, memory_share_mib, percent_of, slice_of
from cta_group_core.units import ComputeCapability
from gpu_strategies import H200, profiles, sizes_on_one

HOPPER = ComputeCapability(9, 0)
every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


def h200_grant(percent: int) -> int:
    """Return what a real H200 granted (driver 580): at least 8 SMs, else the share rounded down to even."""
    share = percent * 132 // 100
    return max(8, share - share % 2)


def slice_on(profile: GpuProfile, groups: int, reserve_mib: int = 1024) -> Slice:
    """Return a slice of a known GPU."""
    return slice_of(
        groups,
        units=profile.units,
        capability=profile.capability,
        memory_total_mib=profile.memory_total_mib,
        reserve_mib=reserve_mib,
    )


def h200_slice(groups: int) -> Slice:
    """Return a slice of an H200 with the usual reserve."""
    return slice_on(PROFILES["h200"], groups)


@every_profile
def test_every_request_on_every_gpu_gets_its_sms(profile: GpuProfile) -> None:
    """By the driver's rule, every allowed request on every known GPU sees at least the SMs it asked for."""
    for groups in sizes_on_one(profile.units):
        share = slice_on(profile, groups)
        assert groups <= share.sm_granted <= profile.sm_count, groups
        assert 1 <= share.sm_percent <= 100, groups
        assert 0 < share.memory_mib < profile.memory_total_mib, groups


@every_profile
def test_no_percent_is_larger_than_needed(profile: GpuProfile) -> None:
    """One percent less would take SMs from the request, so no neighbour loses SMs to rounding without need."""
    for groups in sizes_on_one(profile.units)[:-1]:
        one_less = percent_of(groups, profile.units) - 1
        assert one_less * profile.sm_count // 100 < groups


@pytest.mark.parametrize(
    ("groups", "percent", "granted"),
    [(8, 7, 8), (16, 13, 16), (24, 19, 24), (32, 25, 32), (48, 37, 48), (64, 49, 64), (96, 73, 96), (120, 91, 120)],
)
def test_slices_of_the_measured_gpu(groups: int, percent: int, granted: int) -> None:
    """On 132 SMs the percentages are those at which a real H200 granted exactly the request."""
    share = h200_slice(groups)
    assert (share.sm_percent, share.sm_granted) == (percent, granted)
    assert h200_grant(percent) == granted


@pytest.mark.parametrize("percent", range(1, 100))
def test_grant_is_the_measured_rule(percent: int) -> None:
    """At every percentage below 100 the grant is the one that was measured."""
    assert granted_sms(percent, 132, HOPPER) == h200_grant(percent)


def test_truncated_percentage_would_lose_a_pair() -> None:
    """24 %, what 32 of 132 truncates to, grants 30 SMs: the reason for rounding up to 25 %, which grants 32."""
    assert granted_sms(24, 132, HOPPER) == 30
    assert granted_sms(25, 132, HOPPER) == 32
    assert percent_of(32, H200) == 25


def test_whole_gpu_gets_every_sm() -> None:
    """128 groups of an H200 are the whole GPU: 100 percent, all 132 SMs, the slack too."""
    share = h200_slice(128)
    assert share.is_whole
    assert (share.sm_percent, share.sm_granted, share.memory_mib) == (100, 132, 142131)


def test_fraction_is_not_whole() -> None:
    """One step below the capacity is a fraction and limited."""
    share = h200_slice(120)
    assert not share.is_whole
    assert share.sm_granted < 132


def test_smallest_grant_depends_on_clusters() -> None:
    """A GPU with thread-block clusters never shows fewer than 8 SMs, an older one never fewer than a pair."""
    assert granted_sms(1, 132, HOPPER) == 8
    assert granted_sms(1, 40, ComputeCapability(7, 5)) == 2
    assert granted_sms(5, 40, ComputeCapability(7, 5)) == 2


def test_memory_of_a_quarter_of_the_measured_gpu() -> None:
    """32 of 128 groups hold a quarter of what CUDA reports on an H200 less the reserve, rounded down."""
    assert h200_slice(32).memory_mib == (143155 - 1024) // 4 == 35532


@given(st.data(), profiles, st.integers(0, 4096))
def test_shares_of_a_full_gpu_never_exceed_its_memory(
    data: st.DataObject, profile: GpuProfile, reserve_mib: int
) -> None:
    """However a GPU is cut up, its slices together hold no more memory than it has after the reserve."""
    units, left, total = profile.units, profile.units.capacity, 0
    while left >= units.minimum:
        groups = data.draw(st.sampled_from([size for size in sizes_on_one(units) if size <= left]))
        left -= groups
        total += memory_share_mib(groups, units.capacity, profile.memory_total_mib, reserve_mib)
    assert total <= profile.memory_total_mib - reserve_mib


@given(profiles, st.integers(0, 4096))
def test_more_groups_never_get_less(profile: GpuProfile, reserve_mib: int) -> None:
    """Percent, SMs and memory grow with the request."""
    shares = [slice_on(profile, groups, reserve_mib) for groups in sizes_on_one(profile.units)]
    for dimension in ("sm_percent", "sm_granted", "memory_mib"):
        values = [getattr(share, dimension) for share in shares]
        assert values == sorted(values)


def test_reserve_above_the_memory_leaves_nothing() -> None:
    """A reserve that is larger than the GPU leaves no memory, not a negative amount."""
    assert memory_share_mib(128, 128, 1000, 1024) == 0


@pytest.mark.parametrize("groups", [-8, 0, 4, 12, 127, 129, 256])
def test_sizes_that_one_gpu_cannot_have_are_refused(groups: int) -> None:
    """A slice is of one GPU: sizes off the steps, and above the capacity, raise and name what was asked."""
    with pytest.raises(RequestNotAllowed, match=f"^{groups} groups are not allowed on one GPU of 128"):
        h200_slice(groups)
