"""Where a waiting pod may go: best fit among nodes, never a promise that an order of arrival could break."""

import random
import time
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.arrival import every_order_fits
from cta_group_core.demand import Demand
from cta_group_core.ending_pods import EndingPod
from cta_group_core.errors import DoesNotFit, RequestNotAllowed, RequestRefused
from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.node_choice import NodeOffer, judge, safe_nodes
from cta_group_core.rooms import GpuRoom
from cta_group_core.scheduling import Load, NodeFacts, PodTerms, Taint
from cta_group_core.units import GpuUnits
from node_choices import choose_nodes

H100 = GpuUnits(sm_count=132, capacity=128, minimum=8, step=8)
POD = PodTerms()


def offer(name: str, *free: int, in_flight: tuple[int, ...] = (), taints: tuple[Taint, ...] = ()) -> NodeOffer:
    """Return a node of H100s with these free groups."""
    rooms = tuple(GpuRoom(GpuUuid(f"GPU-{name}-{index}"), index, H100, room) for index, room in enumerate(free))
    facts = NodeFacts(NodeName(name), taints=taints, pods=100, groups=1024)
    return NodeOffer(facts, rooms, in_flight)


def test_the_fullest_gpu_that_has_room_wins() -> None:
    """The node where the fewest groups are left on the GPU comes first, alternatives follow in the same order."""
    offers = [offer("roomy", 128, 128), offer("tight", 128, 40), offer("middle", 64, 64)]
    assert choose_nodes(POD, (32,), offers) == ("tight", "middle", "roomy")


def test_nodes_that_others_have_filled_come_last() -> None:
    """Where pods without groups have left no cpu a pod is sent only when nobody else takes it, not refused."""
    facts = NodeFacts(NodeName("tight"), pods=100, groups=1024, cpu_milli=8000)
    tight = replace(offer("tight", 32), facts=facts, others=Load(cpu_milli=7000, pods=3))
    roomy = [offer(name, 128) for name in "abc"]
    needy = PodTerms(cpu_milli=2000)
    roomy = [replace(one, facts=replace(one.facts, cpu_milli=8000)) for one in roomy]
    assert choose_nodes(needy, (32,), [tight, *roomy]) == ("a", "b", "c")
    assert choose_nodes(needy, (32,), [tight]) == ("tight",)
    assert choose_nodes(PodTerms(cpu_milli=1000), (32,), [tight, *roomy])[0] == "tight"


def test_ties_go_to_the_fuller_node_then_by_name() -> None:
    """Equal GPUs: the node with less room in all, then the first by name."""
    assert choose_nodes(POD, (32,), [offer("b", 64), offer("a", 64), offer("c", 64, 64)]) == ("a", "b", "c")


def test_at_most_three_nodes() -> None:
    """The pod is released to a few nodes only, since each of them keeps room for it."""
    assert len(choose_nodes(POD, (32,), [offer(name, 128) for name in "abcdef"])) == 3


def test_promised_room_is_not_given_twice() -> None:
    """Pods on their way hold their room."""
    with pytest.raises(DoesNotFit, match=r"n: free per GPU: GPU 0: 16 of 128"):
        choose_nodes(POD, (32,), [offer("n", 48, in_flight=(32,))])


def test_an_order_that_would_fail_is_no_promise() -> None:
    """A pod that would take what another order of arrival needs has to wait for the others."""
    with pytest.raises(DoesNotFit, match="promised to 2 containers"):
        choose_nodes(POD, (32,), [offer("n", 64, 48, in_flight=(48, 32))])


def test_unequal_kinds_are_told_apart() -> None:
    """The refusal says asked, what is free on each GPU of each node, what fits, and which nodes do not count."""
    offers = [offer("a", *[64] * 8), offer("b", 16, 128, taints=(Taint("x", "", "NoSchedule"),))]
    with pytest.raises(DoesNotFit) as refused:
        choose_nodes(POD, (96,), offers)
    assert str(refused.value) == (
        "asked for 96 groups, but no node has room: a: free per GPU: GPU 0-7: 64 of 128 each; the largest request that "
        "fits now is 64 on one GPU; out of the question: b: taint x:NoSchedule"
    )


@pytest.mark.parametrize(
    ("key", "words"), [("node.kubernetes.io/unreachable", "unreachable"), ("node.kubernetes.io/not-ready", "not ready")]
)
def test_a_node_that_is_not_heard_of_holds_what_it_held(key: str, words: str) -> None:
    """What is held there is told with its number, what is on its way there included; an empty one is just away."""
    taint = (Taint(key, "", "NoSchedule"),)
    offers = [offer("away", 64, 128, in_flight=(32,), taints=taint), offer("empty", 128, taints=taint)]
    with pytest.raises(RequestRefused) as refused:
        choose_nodes(POD, (32,), offers)
    assert str(refused.value) == (
        f"asked for 32 groups; out of the question: away: {words}, 96 groups held there; empty: {words}"
    )
    elsewhere = replace(POD, node_selector=(("zone", "b"),))
    with pytest.raises(RequestRefused, match=r"out of the question: away, empty: node selector zone=b$"):
        choose_nodes(elsewhere, (32,), offers)


def test_what_comes_back_is_told_with_its_pod_and_its_time() -> None:
    """A pod that is being deleted gives its groups back when it is gone, which is what the waiting one waits for."""
    ending = (EndingPod("web-0", 32, "2026-01-01T00:02:00Z"),)
    with pytest.raises(DoesNotFit, match="groups come back: 32 when pod web-0 has ended, by 2026-01-01T00:02:00Z"):
        choose_nodes(POD, (32,), [replace(offer("n", 0), ending=ending)])


def test_a_node_whose_kubelet_would_fail_the_pod_is_left_alone() -> None:
    """A node that is closed gets nothing, whatever is free there, and the refusal says why; it may open again."""
    closed = replace(offer("n", 128), closed="its kubelet does not know the plugin now")
    assert choose_nodes(POD, (32,), [closed, offer("other", 128)]) == ("other",)
    with pytest.raises(DoesNotFit, match="n: its kubelet does not know the plugin now"):
        choose_nodes(POD, (32,), [closed])


def test_more_than_the_gpus_of_a_node_is_not_called_a_wrong_size() -> None:
    """A multiple of whole GPUs that the node has too few of is refused with what the node has."""
    with pytest.raises(RequestNotAllowed, match="n: more than the GPUs there have: 2 of 128 groups"):
        choose_nodes(POD, (512,), [offer("n", 128, 128)])


def test_a_size_that_never_fits() -> None:
    """A size that no GPU serves even when empty is another error than one that has to wait."""
    with pytest.raises(RequestNotAllowed, match="in steps of 8"):
        choose_nodes(POD, (12,), [offer("a", 128)])


def test_no_node_at_all() -> None:
    """Without any CTANode the refusal says so."""
    with pytest.raises(DoesNotFit, match="no CTANode is published"):
        choose_nodes(POD, (32,), [])


def test_what_kubelet_advertises_counts_too() -> None:
    """A node whose plugin is not registered with kubelet is not chosen, since the scheduler would not bind there."""
    room = offer("a", 128)
    dead = NodeOffer(NodeFacts(NodeName("a"), pods=100, groups=0), room.rooms)
    with pytest.raises(DoesNotFit, match="kubelet advertises 0 groups: its plugin is not registered yet, or under"):
        choose_nodes(POD, (32,), [dead])
    assert choose_nodes(POD, (32,), [NodeOffer(room.facts, room.rooms, load=Load(groups=992))]) == ("a",)
    with pytest.raises(DoesNotFit, match="of which 24 are left"):
        choose_nodes(POD, (32,), [NodeOffer(room.facts, room.rooms, load=Load(groups=1000))])


def test_containers_of_one_pod_are_counted_together() -> None:
    """Two containers that ask are two arrivals on the same node."""
    assert choose_nodes(POD, (96, 64), [offer("a", 96, 64), offer("b", 128)]) == ("a",)


def test_many_nodes_are_told_in_short() -> None:
    """A refusal by many equal nodes names two of them and counts the rest."""
    with pytest.raises(DoesNotFit, match="n0, n1 and 498 more: free per GPU: GPU 0: 8 of 128"):
        choose_nodes(POD, (32,), [offer(f"n{number}", 8) for number in range(500)])


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 16).map(lambda eights: eights * 8), min_size=1, max_size=3),
            st.lists(st.sampled_from((8, 32, 64)), max_size=2),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from((8, 32, 96, 128, 256)),
)
def test_every_chosen_node_is_safe(nodes: list[tuple[list[int], list[int]]], groups: int) -> None:
    """Every node that is named takes the pod in every order, and no node is left out when a safe one exists."""
    offers = {
        f"n{place}": offer(f"n{place}", *free, in_flight=tuple(going)) for place, (free, going) in enumerate(nodes)
    }
    safe = {name for name, one in offers.items() if every_order_fits(one.rooms, (*one.in_flight, groups))}
    try:
        chosen = set(choose_nodes(POD, (groups,), list(offers.values())))
    except RequestRefused:
        chosen = set()
    assert chosen <= safe
    assert bool(chosen) is bool(safe)


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 16).map(lambda eights: eights * 8), min_size=1, max_size=3),
            st.lists(st.sampled_from((8, 32)), max_size=1),
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(((8,), (32,), (96,), (128,), (256,), (32, 64))),
)
def test_the_glance_is_right(nodes: list[tuple[list[int], list[int]]], requests: tuple[int, ...]) -> None:
    """Ranking most nodes by a glance names the same nodes in the same order as judging every one in full."""
    offers = [offer(f"n{place}", *free, in_flight=tuple(going)) for place, (free, going) in enumerate(nodes)]
    judged = [judge(POD, requests, one) for one in offers]
    best = sorted((one.rank, one.node) for one in judged if one.rank is not None)[:3]
    assert safe_nodes(POD, requests, offers) == tuple(node for _, node in best)


def test_a_thousand_nodes_are_judged_in_time() -> None:
    """One pod against 1000 nodes of 8 GPUs takes well under a second, a bound that a slow machine keeps too."""
    offers = [offer(f"n{number}", *[number % 16 * 8] * 8) for number in range(1000)]
    started = time.process_time()
    choose_nodes(POD, (32,), offers)
    assert time.process_time() - started < 1


def test_what_is_known_of_a_size_is_what_would_be_found_out_again() -> None:
    """A node that was asked before, by other pods and amid another demand, is ranked like one that never was."""
    sizes, chance = (8, 32, 48, 256), random.Random(1)  # noqa: S311 - a story, no secret
    pods = [PodTerms(cpu_milli=cpu, needs_clusters=needs) for cpu in (0, 4000) for needs in (False, True)]
    offers = [
        replace(
            offer(f"n{number}", *(chance.choice((0, 8, 40, 128)) for _ in range(4))),
            has_clusters=number % 2 == 0,
            facts=NodeFacts(NodeName(f"n{number}"), cpu_milli=1000 * chance.randrange(20), pods=100, groups=512),
        )
        for number in range(8)
    ]
    for groups in (16, 64, 400):
        demand = Demand(Load(cpu_milli=4000, memory_bytes=0, pods=2, groups=groups))
        offers = [one.amid(demand) for one in offers]
        for pod, size in product(pods, sizes):
            assert safe_nodes(pod, (size,), offers) == safe_nodes(pod, (size,), map(replace, offers))
