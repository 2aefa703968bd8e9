"""The share of memory that fits a slice, against what real vLLM did on an H200.

The figures are measurements with vLLM 0.25.0 in MPS slices with memory limits: which value started, which died, and
what the process took in the end.
"""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import SliceTooSmall
from cta_group_core.profiles import PROFILES, profile_named
from cta_group_core.slices import memory_share_mib
from cta_group_core.vllm.memory import Load, SliceMemory, context_mib, largest_utilization, reserve_mib
from cta_group_core.vllm.values import Utilization

TOTAL_MIB = 143155


@dataclass(frozen=True)
class Started:
    """One server that started: its slice, its share, and MiB that its process took, with graphs and eager."""

    groups: int
    limit_mib: int
    share: str
    used_mib: int
    used_eager_mib: int


STARTED = [
    Started(8, 8947, "0.0505", 8644, 8112),
    Started(16, 17894, "0.105", 16462, 15930),
    Started(32, 35788, "0.23", 34394, 33862),
    Started(64, 71577, "0.48", 70356, 69824),
]
DIED_IN_32_GROUPS = ["0.92", "0.25", "0.2488", "0.2459", "0.245", "0.2429", "0.24"]
USED_BY_4B_IN_32_GROUPS = 35046


def share_of(case: Started) -> SliceMemory:
    """Return the slice of a measurement."""
    return SliceMemory(groups=case.groups, limit_mib=case.limit_mib, total_mib=TOTAL_MIB, product="NVIDIA H200")


@pytest.mark.parametrize("case", STARTED, ids=lambda case: f"{case.groups}-groups")
@pytest.mark.parametrize("eager", [False, True], ids=["graphs", "eager"])
def test_the_value_given_is_one_that_was_seen_to_start(case: Started, eager: bool) -> None:  # noqa: FBT001
    """Never above a value that started in the same slice, and not needlessly far below it."""
    found = largest_utilization(share_of(case), Load(eager=eager))
    seen = Utilization.parse(case.share)
    assert found <= seen
    assert found.ten_thousandths >= seen.ten_thousandths - 100


@pytest.mark.parametrize("died", DIED_IN_32_GROUPS)
def test_the_value_given_is_below_every_one_that_died(died: str) -> None:
    """None of the shares at which vLLM ended with an error is ever given, eager or not."""
    quarter = share_of(STARTED[2])
    assert largest_utilization(quarter, Load(eager=True)) < Utilization.parse(died)


@pytest.mark.parametrize("case", STARTED, ids=lambda case: f"{case.groups}-groups")
@pytest.mark.parametrize("eager", [False, True], ids=["graphs", "eager"])
def test_the_process_stays_below_its_limit(case: Started, eager: bool) -> None:  # noqa: FBT001
    """What it took beyond its share, on top of the share given here, is less than the limit."""
    beyond = (case.used_eager_mib if eager else case.used_mib) - float(case.share) * TOTAL_MIB
    given_mib = float(str(largest_utilization(share_of(case), Load(eager=eager)))) * TOTAL_MIB
    assert given_mib + beyond < case.limit_mib


def test_a_larger_model_fits_too() -> None:
    """4B took 600 MiB more than 0.6B for its graphs; the reserve covers it."""
    quarter = share_of(STARTED[2])
    beyond = USED_BY_4B_IN_32_GROUPS - 0.23 * TOTAL_MIB
    assert float(str(largest_utilization(quarter, Load(eager=False)))) * TOTAL_MIB + beyond < quarter.limit_mib


@pytest.mark.parametrize(("groups", "measured"), [(8, 59), (16, 87), (32, 143), (64, 266)])
def test_the_context_is_as_large_as_measured(groups: int, measured: int) -> None:
    """29 MiB and 3.7 MiB a group, within 6 MiB of every measurement."""
    assert abs(context_mib(groups) - measured) <= 6


def test_a_quarter_of_an_h100_gets_its_value_exactly() -> None:
    """The arithmetic is done in integers and rounded down to four decimals."""
    h100 = profile_named("h100-sxm")
    total = h100.memory_total_mib
    quarter = SliceMemory(groups=32, limit_mib=memory_share_mib(32, 128, total, 1024), total_mib=total)
    assert quarter.limit_mib == 19996
    # (19996 - 29 - 118.4 - 3072) / 81008 = 0.207098...
    assert str(largest_utilization(quarter, Load(eager=False))) == "0.207"


def test_a_slice_with_nothing_left_is_refused_with_its_numbers() -> None:
    """No share at all is better than one that cannot start; the sentence says what to do."""
    small = SliceMemory(groups=4, limit_mib=1390, total_mib=14930, product="Tesla T4")
    with pytest.raises(SliceTooSmall, match=r"4 groups of Tesla T4 \(1390 of 14930 MiB\).*ask for more groups"):
        largest_utilization(small, Load(eager=True))


@given(st.sampled_from(sorted(PROFILES)), st.integers(1, 160), st.booleans(), st.integers(0, 4096))
def test_share_context_and_reserve_never_exceed_the_limit(
    name: str,
    groups: int,
    eager: bool,  # noqa: FBT001
    reserve_mib: int,
) -> None:
    """For every known GPU and size: a share of 512 MiB or more that leaves 2816 MiB, or a refusal."""
    profile = PROFILES[name]
    total = profile.memory_total_mib
    groups = min(groups, profile.units.capacity)
    limit = memory_share_mib(groups, profile.units.capacity, total, reserve_mib)
    try:
        found = largest_utilization(SliceMemory(groups, limit, total), Load(eager=eager))
    except SliceTooSmall:
        assert limit < 2816 + 256 + 512 + context_mib(groups) + total / 10_000 + 1
        return
    assert 0 < found.ten_thousandths < 10_000
    assert found.ten_thousandths * total / 10_000 + context_mib(groups) + 2815 <= limit


@given(st.integers(1, 128), st.integers(4800, 80000), st.integers(0, 10000), st.integers(1, 2048))
def test_more_memory_never_gives_a_smaller_share(groups: int, limit: int, more: int, sequences: int) -> None:
    """The share grows with the limit."""
    total = 81008
    low, high = SliceMemory(groups, limit, total), SliceMemory(groups, limit + more, total)
    load = Load(sequences=sequences)
    assert largest_utilization(low, load) <= largest_utilization(high, load)


@pytest.mark.parametrize("sequences", [16, 64, 256, 1024])
@pytest.mark.parametrize("case", STARTED, ids=lambda case: f"{case.groups}-groups")
@pytest.mark.parametrize("eager", [False, True], ids=["graphs", "eager"])
def test_fewer_sequences_never_give_more_than_was_seen_to_start(
    case: Started,
    eager: bool,  # noqa: FBT001
    sequences: int,
) -> None:
    """What a smaller warm-up saves is taken into account in small slices only."""
    found = largest_utilization(share_of(case), Load(eager=eager, sequences=sequences))
    assert found <= Utilization.parse(case.share)


def test_the_smallest_model_has_room_in_the_smallest_slice_of_an_h100() -> None:
    """8 groups of 80 GB: 0.6B took 1147 MiB of weights and 1178 MiB of profile, and 64 sequences leave that."""
    smallest = SliceMemory(groups=8, limit_mib=4999, total_mib=81008)
    assert largest_utilization(smallest, Load(sequences=64)).of(81008) > 1147 + 1178
    assert largest_utilization(smallest, Load()).of(81008) < 1147 + 1178


def test_the_reserve_grows_with_what_a_server_takes() -> None:
    """More sequences, a larger vocabulary, more layers; without graphs the layers do not count."""
    quarter = share_of(STARTED[2])
    assert reserve_mib(quarter, Load()) == 3072
    assert reserve_mib(quarter, Load(sequences=2048)) == 3072 + 594
    assert reserve_mib(quarter, Load(vocabulary=262144)) == 3072 + 1024 - 593
    assert reserve_mib(quarter, Load(layers=64)) == 3072 + 28 * 40
    assert reserve_mib(quarter, Load(layers=64, eager=True)) == 2816
