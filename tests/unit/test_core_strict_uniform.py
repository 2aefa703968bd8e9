"""Strict-uniform: a GPU serves shares of one size at a time, so that the ceiling of its daemon is each one's limit."""

from collections.abc import Mapping
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.arrival import arrive, every_order_fits
from cta_group_core.errors import DoesNotFit, RequestRefused
from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.node_choice import NodeOffer, judge, safe_nodes
from cta_group_core.nodes import NodeStatus
from cta_group_core.placement import check_ids, choose_gpus, choose_ids
from cta_group_core.rooms import GpuRoom, SharePolicy, describe_free, largest_fit
from cta_group_core.scheduling import NodeFacts, PodTerms
from gpu_strategies import H200, ids_of, indexed, sizes_on_one, units_only, uuid_of

SIZES = sizes_on_one(H200)


def strict(index: int, free: int, *shares: int) -> GpuRoom:
    """Return a GPU that serves one size at a time, with the sizes that are held."""
    return GpuRoom(uuid=uuid_of(index), index=index, units=H200, free=free, shares=frozenset(shares))


def test_a_share_joins_its_like_and_opens_an_empty_gpu_otherwise() -> None:
    """The GPU of the same size is filled first, whatever room a GPU of another size has."""
    rooms = [strict(0, 112, 16), strict(1, 64, 32), strict(2, 128)]
    assert [room.index for room in choose_gpus(rooms, 32)] == [1]
    assert [room.index for room in choose_gpus(rooms, 16)] == [0]
    assert [room.index for room in choose_gpus(rooms, 64)] == [2]
    assert [room.index for room in choose_gpus(rooms, 128)] == [2]


def test_a_refusal_says_what_each_gpu_is_shared_in() -> None:
    """Room that is kept for another size is told as such, and what would fit is the size that is served."""
    rooms = [strict(0, 96, 32), strict(1, 64, 16, 48)]
    with pytest.raises(DoesNotFit) as refused:
        choose_gpus(rooms, 64)
    assert str(refused.value) == (
        "asked for 64 groups, but no GPU has room: free per GPU: GPU 0: 96 of 128 (shared in 32), GPU 1: 64 of 128 "
        "(shared in 16 and 48); the largest request that fits now is 32 on one GPU"
    )


@pytest.mark.parametrize(
    ("room", "largest"),
    [
        (strict(0, 128), 128),
        (strict(0, 96, 32), 32),
        (strict(0, 24, 104), 0),
        (strict(0, 64, 16, 48), 0),
    ],
)
def test_the_largest_request_is_one_that_may_join(room: GpuRoom, largest: int) -> None:
    """An empty GPU takes all, one that is shared its own size, one of mixed sizes of before nothing."""
    assert largest_fit([room]) == room.largest == largest


def test_equal_gpus_are_told_together_when_their_shares_are_equal_too() -> None:
    """The words of free groups differ as soon as the sizes do."""
    assert (
        describe_free([strict(0, 96, 32), strict(1, 96, 32)]) == "free per GPU: GPU 0-1: 96 of 128 (shared in 32) each"
    )
    assert "GPU 0: 64 of 128 (shared in 64), GPU 1" in describe_free([strict(0, 64, 64), strict(1, 64, 32)])


def test_ids_follow_the_same_rule() -> None:
    """The plugin chooses ids by it, and refuses ids of a GPU that serves another size."""
    rooms = [strict(0, 96, 32), strict(1, 128)]
    shares: Mapping[GpuUuid, frozenset[int]] = {uuid_of(0): frozenset({32})}
    available = [*ids_of(0, range(32, 128)), *ids_of(1, range(128))]
    chosen = choose_ids(indexed(rooms), available=available, must_include=[], groups=64, shares=shares)
    assert {group.gpu for group in chosen} == {uuid_of(1)}
    chosen = choose_ids(indexed(rooms), available=available, must_include=[], groups=32, shares=shares)
    assert {group.gpu for group in chosen} == {uuid_of(0)}
    assert check_ids(units_only(rooms), chosen, shares=shares) == (uuid_of(0),)
    with pytest.raises(DoesNotFit, match="serves shares of one size at a time"):
        check_ids(units_only(rooms), ids_of(0, range(64, 128)), shares=shares)


@given(st.lists(st.sampled_from(SIZES), max_size=24))
def test_no_arrival_mixes_sizes(requests: list[int]) -> None:
    """Whatever arrives, every GPU holds one size, within its capacity."""
    rooms: tuple[GpuRoom, ...] = tuple(strict(index, 128) for index in range(3))
    held: dict[int, list[int]] = {index: [] for index in range(3)}
    for groups in requests:
        try:
            (served,) = choose_gpus(rooms, groups)
        except RequestRefused:
            continue
        held[served.index].append(groups)
        rooms = arrive(rooms, groups)
    for room in rooms:
        assert len(set(held[room.index])) <= 1
        assert room.free == 128 - sum(held[room.index])
        assert room.shares == frozenset(held[room.index])


@given(st.lists(st.sampled_from([8, 32, 64, 128]), min_size=1, max_size=4), st.integers(1, 3))
def test_a_promise_holds_in_every_order(requests: list[int], gpus: int) -> None:
    """What is said of every order is what trying every order says."""
    rooms = tuple(strict(index, 128) for index in range(gpus))
    assert every_order_fits(rooms, requests) == all(_fits(rooms, order) for order in permutations(requests))


def _fits(rooms: tuple[GpuRoom, ...], requests: tuple[int, ...]) -> bool:
    try:
        for groups in requests:
            rooms = arrive(rooms, groups)
    except RequestRefused:
        return False
    return True


@given(
    st.lists(st.tuples(st.integers(0, 16), st.sets(st.sampled_from([8, 32, 64]), max_size=2)), min_size=1, max_size=4)
)
def test_nodes_are_ranked_as_they_are_judged(drawn: list[tuple[int, set[int]]]) -> None:
    """The quick look at many nodes chooses the same as the whole judgement."""
    offers = [
        NodeOffer(NodeFacts(NodeName(f"n{index}"), pods=100, groups=1024), (strict(index, eighths * 8, *shares),))
        for index, (eighths, shares) in enumerate(drawn)
    ]
    judged = [judge(PodTerms(), (32,), one) for one in offers]
    best = sorted((one.rank, one.node) for one in judged if one.rank is not None)[:3]
    assert safe_nodes(PodTerms(), (32,), offers) == tuple(node for _, node in best)


@pytest.mark.parametrize(("mode", "largest"), [("strict-uniform", 32), ("cooperative", 96), ("of-a-newer-plugin", 96)])
def test_a_published_node_tells_its_rule(mode: str, largest: int) -> None:
    """Who reads CTANode places by the mode of that node; a mode that is not known restricts nothing."""
    held = {"namespace": "team", "pod": "a", "container": "main", "groups": 32, "memoryMiB": 1}
    gpu = {
        "uuid": uuid_of(0),
        "index": 0,
        "product": "H200",
        "computeCapability": "9.0",
        "smCount": 132,
        "capacity": 128,
        "minimum": 8,
        "step": 8,
        "free": 96,
        "allocations": [held],
    }
    status = NodeStatus.model_validate({"resourceName": "x/y", "enforcement": {"mode": mode}, "gpus": [gpu]})
    assert largest_fit(status.rooms()) == status.with_totals().largest_fit == largest
    assert status.enforcement.policy.value == (mode if mode in set(SharePolicy) else "cooperative")
