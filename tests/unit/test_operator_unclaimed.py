"""A pod that waits for a scheduler of which nobody hears keeps no GPU from others."""

from dataclasses import replace
from typing import Any

from cta_group_core.ids import NodeName
from cta_group_core.scheduling import NodeTerm, PodTerms
from cta_group_core.selectors import Operator, Requirement
from cta_group_operator.ports import PodView
from cta_group_operator.reconcile.in_flight import Offers
from cta_group_operator.reconcile.unclaimed import UNCLAIMED_SECONDS, Unclaimed
from cta_group_operator.reconcile.view import ClusterView
from operator_world import FakeClock, a_node, a_pod, a_view


def released(name: str, **changes: Any) -> PodView:
    """Return a pod that was released to n1 and waits for scheduler batch."""
    named = Requirement(key="metadata.name", operator=Operator.IN, values=("n1",))
    terms = PodTerms(node_terms=(NodeTerm(fields=(named,)),))
    return a_pod(name, **{"gates": (), "terms": terms, "scheduler": "batch", **changes})


def a_world() -> tuple[ClusterView, FakeClock, Unclaimed]:
    """Return a node n1, a clock, and what judges."""
    view, clock = a_view(), FakeClock()
    a_node(view, "n1", 128)
    return view, clock, Unclaimed(view, clock)


def in_flight(view: ClusterView, unclaimed: Unclaimed) -> tuple[int, ...]:
    """Return what placement counts on n1 as on its way."""
    (offer,) = Offers(view, {}, is_unclaimed=unclaimed.is_unclaimed).all()
    return offer.in_flight


def test_room_is_kept_for_a_while() -> None:
    """Then it is free for others, whoever asks when that will be is told, and the words say which scheduler."""
    view, clock, unclaimed = a_world()
    pod = released("p")
    view.pods.put(pod)
    assert unclaimed.left_seconds() == UNCLAIMED_SECONDS
    clock.now += UNCLAIMED_SECONDS - 1
    assert (in_flight(view, unclaimed), unclaimed.words_for(pod)) == ((32,), "")
    assert (unclaimed.left_seconds(), unclaimed.news()) == (1, [])
    clock.now += 1
    assert in_flight(view, unclaimed) == ()
    assert (unclaimed.left_seconds(), unclaimed.news(), unclaimed.news()) == (None, [pod], [])
    assert unclaimed.words_for(pod) == (
        "scheduler batch has not taken it for 5 minutes, so no room is kept; is it running?"
    )


def test_room_is_not_kept_for_ever_for_what_no_node_has() -> None:
    """A volume that does not come: Kubernetes' own scheduler says so, and its words are passed on."""
    view, clock, unclaimed = a_world()
    said = {
        "unschedulable": True,
        "words": "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
    }
    pod = released("p", scheduler="default-scheduler", **said)
    view.pods.put(pod)
    clock.now += UNCLAIMED_SECONDS - 1
    assert in_flight(view, unclaimed) == (32,)
    clock.now += 1
    assert (in_flight(view, unclaimed), unclaimed.news()) == ((), [pod])
    assert unclaimed.words_for(pod) == (
        "scheduler default-scheduler has not taken it for 5 minutes, so no room is kept "
        "(0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.)"
    )
    view.pods.put(replace(pod, resource_version="2", words="0/1 nodes are available: 1 Insufficient cpu."))
    assert in_flight(view, unclaimed) == (32,)  # that is planned again


def test_a_pod_that_is_bound_after_all_holds_its_room() -> None:
    """Whoever bound it, the node's kubelet will be asked for its groups."""
    view, clock, unclaimed = a_world()
    pod = released("p")
    view.pods.put(pod)
    clock.now += UNCLAIMED_SECONDS
    view.pods.put(replace(pod, resource_version="2", node=NodeName("n1")))
    assert in_flight(view, unclaimed) == (32,)


def test_kubernetes_own_scheduler_is_waited_for() -> None:
    """It says what it cannot bind; gated pods are not its business, nor are ended ones."""
    view, clock, unclaimed = a_world()
    view.pods.put(released("usual", scheduler="default-scheduler"))
    view.pods.put(a_pod("gated", scheduler="batch"))
    view.pods.put(released("over", phase="Failed"))
    clock.now += 10 * UNCLAIMED_SECONDS
    assert not any(unclaimed.is_unclaimed(pod) for pod in view.pods)
    assert unclaimed.left_seconds() is None


def test_nothing_is_kept_of_pods_that_are_gone() -> None:
    """A pod of the same name that comes later has its own time."""
    view, clock, unclaimed = a_world()
    view.pods.put(released("p"))
    clock.now += UNCLAIMED_SECONDS
    view.pods.remove(("team-a", "p"))
    again = released("p", resource_version="9")
    view.pods.put(again)
    assert not unclaimed.is_unclaimed(again)
