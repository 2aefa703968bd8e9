"""Pods that find no room and the autoscaler: who is released without a node, who stays gated and why."""

from dataclasses import replace

from conditions import until
from cta_group_core.ids import NodeName
from cta_group_core.node_choice import NodeOffer
from cta_group_core.scale_up import why_not_shown
from cta_group_core.scheduling import Load, NodeFacts, PodTerms, Taint
from cta_group_operator.clock import SystemClock
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.in_flight import Offers
from cta_group_operator.reconcile.placement import Placement
from cta_group_operator.reconcile.showing import Showing
from cta_group_operator.settings import Settings
from operator_world import FakeClock, FakeKube, a_node, a_pod, a_view, on
from placement_running import running

POD = PodTerms()


def full(name: str = "n1", left: int = 0) -> NodeOffer:
    """Return a node of eight H100 with nothing free on any, of which the scheduler counts some groups as left."""
    view = a_view()
    a_node(view, name, *[0] * 8)
    (offer,) = Offers(view, {}).all()
    return replace(offer, load=Load(groups=1024 - left))


def test_who_fits_nowhere_is_shown() -> None:
    """A request that an empty GPU would take is shown while the scheduler finds no node for it either."""
    assert why_not_shown(POD, (96,), [full()]) == ""


def test_without_any_node_it_is_shown() -> None:
    """A cluster that has no GPU node yet may get its first one."""
    assert why_not_shown(POD, (96,), []) == ""


def test_a_size_that_no_gpu_takes_is_not_shown() -> None:
    """No new node would help a request that no GPU of this kind could take."""
    assert "even if it were empty" in why_not_shown(POD, (12,), [full()])
    assert "even if it were empty" in why_not_shown(POD, (4096,), [full()])


def test_where_the_scheduler_would_bind_it_it_is_not_shown() -> None:
    """Groups that are left in pieces would draw the pod to a GPU that refuses it."""
    told = why_not_shown(POD, (96,), [full("other"), full("n1", left=96)])
    assert told == (
        "not shown to the autoscaler: the scheduler would bind it to n1, which has 96 groups left on several GPUs"
    )


def test_nodes_out_of_question_do_not_count() -> None:
    """A node that the pod's own terms exclude neither draws it nor tells what a GPU of its kind could take."""
    tainted = NodeFacts(NodeName("n1"), taints=(Taint("x", "", "NoSchedule"),), pods=100, groups=1024)
    assert why_not_shown(POD, (12,), [replace(full(), facts=tainted, load=Load())]) == ""


def test_it_is_shown_when_its_time_has_come() -> None:
    """A refused pod waits the whole time first, and without an autoscaler for ever."""
    clock, kube, again = FakeClock(), FakeKube(), list[float]()
    events = EventWriter(kube, clock, "me")
    showing = Showing(a_view(), clock, events, after_seconds=30.0, look_again=again.append)
    pod = a_pod("p", 96)
    assert showing.verdict(pod, [full()]) == ""
    assert again == [30.0]
    clock.now += 30.0
    assert showing.verdict(pod, [full()]) is None
    showing.forget(pod.ref.uid)
    assert showing.verdict(pod, [full()]) == ""
    never = Showing(a_view(), clock, events, after_seconds=None, look_again=again.append)
    assert never.verdict(pod, [full()]) == ""


async def test_nobody_is_evicted_for_a_pod_that_is_shown() -> None:
    """The scheduler would make room in sum for one of a higher priority, and the plugin may refuse it all the same."""
    view, clock, kube = a_view(), FakeClock(), FakeKube()
    a_node(view, "n1", 0)
    showing = Showing(view, clock, EventWriter(kube, clock, "me"), after_seconds=0.0, look_again=lambda _: None)
    for name, priority in (("low", 0), ("equal", 7), ("high", 9)):
        view.pods.put(a_pod(name, 64, priority=priority, node=NodeName("n1"), gates=(), phase="Running"))
    view.pods.put(a_pod("comes", 32, gates=(), terms=on("n1")))
    offers = [full("n1")]
    assert showing.verdict(a_pod("p", 96, priority=7), offers) == (
        "not shown to the autoscaler: the scheduler would evict pods of a lower priority on n1 for it, whose groups "
        "may lie on several GPUs; with a PriorityClass of preemptionPolicy: Never it is shown"
    )
    assert showing.verdict(a_pod("p", 96, priority=7, evicts=False), offers) is None
    assert showing.verdict(a_pod("p", 96), offers) is None
    assert showing.verdict(a_pod("p", 128, priority=7), offers) is None
    elsewhere = PodTerms(node_selector=(("zone", "b"),))
    assert showing.verdict(a_pod("p", 96, priority=7, terms=elsewhere), offers) is None


async def test_the_release_names_no_node() -> None:
    """The gate goes, no affinity comes, the annotation says so, and the pod is told; it is no promise anywhere."""
    view, kube = a_view(), FakeKube()
    a_node(view, "n1", 0)
    bound: list[PodView] = [a_pod("holds", 1024, gates=(), node=NodeName("n1"))]
    for pod in [*bound, a_pod("large", 96)]:
        view.pods.put(pod)
    placement = Placement(
        view,
        kube,
        SystemClock(),
        settings=Settings(identity="me", scale_up_after_seconds=0.0),
        metrics=Metrics("test"),
        events=EventWriter(kube, FakeClock(), "me"),
        tell=lambda _: None,
    )
    async with running(placement):
        await until(lambda: [path for verb, path in kube.writes if verb == "create"], "the event")
    operations = kube.objects["/api/v1/namespaces/team-a/pods/large"]["operations"]
    assert [(one["op"], one["path"]) for one in operations if one["op"] != "test"] == [
        ("add", "/metadata/annotations"),
        ("remove", "/spec/schedulingGates/0"),
    ]
    (event,) = (body for path, body in kube.objects.items() if "/events/" in path)
    assert event["reason"] == "ShownToAutoscaler"
    free = a_pod("large", 96, gates=(), resource_version="2", placed_on="any")
    view.pods.put(free)
    (offer,) = Offers(view, {}).all()
    assert 96 not in offer.in_flight
    assert not placement.words
