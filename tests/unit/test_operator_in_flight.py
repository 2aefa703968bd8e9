"""What is on its way to a node, and which nodes are offered to pods."""

from dataclasses import replace

from cta_group_core.ending_pods import EndingPod
from cta_group_core.ids import NodeName
from cta_group_core.nodes import Allocation, Condition, ConditionStatus
from cta_group_operator.ports import PodView
from cta_group_operator.reconcile.in_flight import Offers, Promise
from cta_group_operator.reconcile.view import ClusterView
from operator_world import SPACE, a_node, a_pod, a_view, on


def in_flight(view: ClusterView, promises: dict[str, Promise] | None = None) -> dict[str, tuple[int, ...]]:
    """Return what is in flight on each node."""
    return {str(one.facts.name): one.in_flight for one in Offers(view, promises or {}).all()}


def a_world(*pods: PodView) -> ClusterView:
    """Return two nodes and pods; pod started holds 32 on n1."""
    view = a_view()
    a_node(view, "n1", 96, tenants=[Allocation(namespace=SPACE, pod="started", container="c", groups=32, memory_mib=1)])
    a_node(view, "n2", 128)
    for pod in pods:
        view.pods.put(pod)
    return view


def test_bound_and_not_reported_is_in_flight() -> None:
    """A bound pod is in flight until its node's plugin reports what it holds; then only the plugin counts it."""
    started = a_pod("started", gates=(), node=NodeName("n1"))
    going = a_pod("going", 64, gates=(), node=NodeName("n1"))
    assert in_flight(a_world(started, going)) == {"n1": (64,), "n2": ()}


def test_released_and_not_bound_is_in_flight_on_its_candidates() -> None:
    """A pod that the scheduler has not bound yet holds room on each node it was released to."""
    assert in_flight(a_world(a_pod("p", gates=(), terms=on("n2")))) == {"n1": (), "n2": (32,)}


def test_who_is_not_in_flight() -> None:
    """Gated pods, ended ones, ones that go before they started, and ones that nobody pinned hold nothing."""
    pods = (
        a_pod("gated"),
        a_pod("ended", gates=(), node=NodeName("n1"), phase="Failed"),
        a_pod("going-away", gates=(), node=NodeName("n1"), deleting=True),
        a_pod("slipped", gates=()),
    )
    assert in_flight(a_world(*pods)) == {"n1": (), "n2": ()}


def test_a_pod_that_is_being_deleted_is_told_while_it_holds_something() -> None:
    """Until its node's plugin reports that it holds nothing, what comes back, from whom and by when is known."""
    until = "2026-01-01T00:02:00Z"
    started = a_pod("started", gates=(), node=NodeName("n1"), deleting=True, ends=until)
    view = a_world(started, a_pod("never", gates=(), node=NodeName("n1"), deleting=True, ends=until))
    ending = {str(one.facts.name): one.ending for one in Offers(view, {}).all()}
    assert ending == {"n1": (EndingPod("started", 32, until),), "n2": ()}


def test_a_promise_counts_while_its_patch_is_on_the_way() -> None:
    """A pod that is still gated here but promised holds its room."""
    pod = a_pod("p")
    assert in_flight(a_world(pod), {pod.ref.uid: Promise(pod, (NodeName("n1"),))}) == {"n1": (32,), "n2": ()}


def test_a_node_whose_plugin_is_not_registered_is_closed() -> None:
    """What the node's plugin says of its registration decides whether pods may be released there."""
    view = a_world()
    node = view.cta_nodes.get("n1")
    assert node is not None
    told = Condition(type="Registered", status=ConditionStatus.FALSE, reason="NotRegistered", message="it is stopping")
    status = node.status.model_copy(update={"conditions": (told,)})
    view.cta_nodes.put(replace(node, resource_version="2", status=status))
    closed = {str(one.facts.name): one.closed for one in Offers(view, {}).all()}
    assert closed == {"n1": "its kubelet does not know the plugin now (it is stopping)", "n2": ""}


def test_an_allocation_of_a_namesake_elsewhere_does_not_count() -> None:
    """A pod bound to one node is not taken for started because another node still reports its name."""
    again = a_pod("started", gates=(), node=NodeName("n2"))
    assert in_flight(a_world(again)) == {"n1": (), "n2": (32,)}


def test_a_ctanode_without_its_node_is_no_offer() -> None:
    """A CTANode whose node was deleted is not offered."""
    view = a_world()
    view.nodes.remove(("", "n1"))
    assert set(in_flight(view)) == {"n2"}
