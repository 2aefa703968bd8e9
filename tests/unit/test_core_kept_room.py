"""Room that is kept for a large pod: small ones go elsewhere, and never onto it, in whatever order they come."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.arrival import arrive
from cta_group_core.errors import DoesNotFit
from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.kept_room import KeptRoom, keepable, without
from cta_group_core.node_choice import NodeOffer, safe_nodes
from cta_group_core.rooms import GpuRoom
from cta_group_core.scheduling import NodeFacts, PodTerms, Taint
from cta_group_core.units import GpuUnits
from node_choices import choose_nodes

H100 = GpuUnits(sm_count=132, capacity=128, minimum=8, step=8)
POD = PodTerms()


def offer(name: str, *free: int) -> NodeOffer:
    """Return a node of H100s with these free groups."""
    rooms = tuple(GpuRoom(GpuUuid(f"GPU-{name}-{index}"), index, H100, room) for index, room in enumerate(free))
    return NodeOffer(NodeFacts(NodeName(name), pods=100, groups=1024), rooms)


def test_the_gpu_that_lacks_least_is_kept() -> None:
    """Over all nodes, the GPU with the most free groups comes first; nodes that are out of question do not count."""
    tainted = offer("t", 88)
    tainted = replace(tainted, facts=replace(tainted.facts, taints=(Taint("x", "", "NoSchedule"),)))
    found = keepable(POD, (96,), [offer("a", 64, 32), offer("b", 8, 80), tainted])
    assert found == (KeptRoom(NodeName("b"), GpuUuid("GPU-b-1"), 16), KeptRoom(NodeName("a"), GpuUuid("GPU-a-0"), 32))


def test_several_gpus_keep_a_node() -> None:
    """A pod of whole GPUs has a node kept, if one is large enough."""
    assert keepable(POD, (256,), [offer("small", 128), offer("two", 64, 128)]) == (KeptRoom(NodeName("two"), None, 64),)


def test_others_go_elsewhere_and_are_told() -> None:
    """A small pod takes other room of the node; one that needs what is kept waits, and is told for whom it is kept."""
    kept = KeptRoom(NodeName("n"), GpuUuid("GPU-n-1"), 32)
    left = without(offer("n", 32, 64), kept, "team/large")
    assert safe_nodes(POD, (32,), [left]) == ("n",)
    assert not safe_nodes(POD, (48,), [left])
    with pytest.raises(DoesNotFit, match="GPU 1 with 64 free is kept for team/large"):
        choose_nodes(POD, (48,), [left])
    closed = without(offer("n", 32, 64), KeptRoom(NodeName("n"), None, 0), "team/large")
    assert not safe_nodes(POD, (8,), [closed])


@given(
    st.lists(st.integers(0, 15).map(lambda eights: eights * 8), min_size=2, max_size=4),
    st.lists(st.sampled_from((8, 16, 32, 64)), min_size=1, max_size=4),
)
def test_what_is_kept_is_never_taken(free: list[int], small: list[int]) -> None:
    """Pods that were released beside a kept GPU leave it alone, in every order in which they arrive."""
    whole = offer("n", *free)
    kept = next(iter(keepable(POD, (128,), [whole])))
    left = without(whole, kept, "large")
    released: list[int] = []
    for groups in small:
        if safe_nodes(POD, (groups,), [replace(left, in_flight=tuple(released))]):
            released.append(groups)
    for order in set(permutations(released)):
        rooms = whole.rooms
        for groups in order:
            rooms = arrive(rooms, groups)
        (after,) = (room for room in rooms if room.uuid == kept.gpu)
        assert after.free == max(free)
