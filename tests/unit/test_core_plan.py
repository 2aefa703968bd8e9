"""What a request would get on a known GPU."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import RequestNotAllowed
from cta_group_core.plan import plan_slice
from cta_group_core.profiles import PROFILES, GpuProfile
from cta_group_core.slices import slice_of
from gpu_strategies import profiles, sizes_on_one

H100 = PROFILES["h100-sxm"]


def test_quarter_of_an_h100() -> None:
    """32 groups of an H100: 25 percent, 32 SMs, a quarter of the memory after the reserve, under the public names."""
    assert plan_slice(H100, 32).as_json() == {
        "gpu": "h100-sxm",
        "groups": 32,
        "capacity": 128,
        "smCount": 132,
        "smGranted": 32,
        "smPercent": 25,
        "memoryMiB": (81559 - 551 - 1024) // 4,
        "minimum": 8,
        "step": 8,
    }


def test_whole_h100() -> None:
    """128 groups are the whole GPU: 100 percent and every SM."""
    plan = plan_slice(H100, 128)
    assert (plan.sm_percent, plan.sm_granted) == (100, 132)


def test_whole_laptop_gpu() -> None:
    """24 groups of the laptop GPU are all of it."""
    plan = plan_slice(PROFILES["rtx-4060-laptop"], 24)
    assert (plan.sm_percent, plan.sm_granted, plan.capacity) == (100, 24, 24)


@given(st.data(), profiles, st.integers(0, 4096))
def test_plan_is_the_slice(data: st.DataObject, profile: GpuProfile, reserve_mib: int) -> None:
    """A plan tells exactly what the node would enforce, for every allowed size and reserve."""
    groups = data.draw(st.sampled_from(sizes_on_one(profile.units)))
    plan = plan_slice(profile, groups, reserve_mib=reserve_mib)
    share = slice_of(
        groups,
        units=profile.units,
        capability=profile.capability,
        memory_total_mib=profile.memory_total_mib,
        reserve_mib=reserve_mib,
    )
    assert (plan.sm_percent, plan.sm_granted, plan.memory_mib) == (
        share.sm_percent,
        share.sm_granted,
        share.memory_mib,
    )


@pytest.mark.parametrize(
    ("name", "groups", "nearest"),
    [("a100-80", 5, "4 or 6"), ("h100-sxm", 12, "8 or 16"), ("h100-sxm", 0, "8"), ("h100-sxm", 192, "128 or 256")],
)
def test_refusal_names_the_nearest_sizes(name: str, groups: int, nearest: str) -> None:
    """A size that is not allowed is refused with the GPU, the number, the rule and the nearest allowed sizes."""
    with pytest.raises(
        RequestNotAllowed, match=rf"^{name} \(.*\): {groups} groups .* in steps of .*nearest: {nearest}$"
    ):
        plan_slice(PROFILES[name], groups)


def test_several_whole_gpus_are_no_plan() -> None:
    """256 groups are allowed in a cluster, but a plan is about one GPU: refused without calling it a wrong size."""
    with pytest.raises(RequestNotAllowed, match="256 groups are 2 whole GPUs, and a plan is about one; ask for 128"):
        plan_slice(H100, 256)


@pytest.mark.parametrize("reserve_mib", [-1, 81008, 100_000])
def test_impossible_reserve_is_refused(reserve_mib: int) -> None:
    """A reserve below nothing, or of all the memory, is refused instead of planning more or none."""
    with pytest.raises(RequestNotAllowed, match=rf"reserve of {reserve_mib} MiB .* less than the GPU's 81008 MiB"):
        plan_slice(H100, 32, reserve_mib=reserve_mib)
