"""Which pods that are being deleted give a quota something back, and when."""

from dataclasses import replace

from cta_group_core.ending_pods import EndingPod, coming_back
from cta_group_core.ids import NodeName
from cta_group_core.scheduling import TAINT_UNREACHABLE, Taint
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import ControllerView, ObjectRef
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.quota_ending import ending_pods
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.workload_marks import WorkloadMarks
from operator_world import RESOURCE, FakeClock, a_limit, a_node, a_pod, a_view, ref

DENIED = (
    'pods "x" is forbidden: exceeded quota: cta-group, requested: requests.nvidia.com/cta-group=32, '
    "used: requests.nvidia.com/cta-group=0, limited: requests.nvidia.com/cta-group=0"
)
FIRST, SECOND = "2026-01-01T00:00:30Z", "2026-01-01T00:00:40Z"


def two_ending() -> ClusterView:
    """Return a namespace with a pod that runs and two that end, on one node."""
    view = a_view()
    a_node(view, "n", 32)
    for name, ends in (("stays", ""), ("second", SECOND), ("first", FIRST)):
        view.pods.put(a_pod(name, 32, node=NodeName("n"), gates=(), deleting=bool(ends), ends=ends))
    return view


def test_each_is_told_while_it_is_charged() -> None:
    """All of them are charged, or nobody has counted yet."""
    both = [EndingPod("first", 32, FIRST), EndingPod("second", 32, SECOND)]
    assert ending_pods(a_limit("team-a", "q", 96, used=96), two_ending()) == both
    assert ending_pods(a_limit("team-a", "q", 96, used=None), two_ending()) == both


def test_one_that_is_charged_no_longer_gives_nothing_back() -> None:
    """Kubernetes has given its groups back already: the one whose grace is over for longest."""
    assert ending_pods(a_limit("team-a", "q", 96, used=64), two_ending()) == [EndingPod("second", 32, SECOND)]
    assert ending_pods(a_limit("team-a", "q", 96, used=32), two_ending()) == []


def lose_node(view: ClusterView) -> None:
    """Have Kubernetes hear of the node no longer."""
    node = view.nodes.get("n")
    assert node is not None
    unreachable = (Taint(TAINT_UNREACHABLE, "", "NoExecute"),)
    view.nodes.put(replace(node, facts=replace(node.facts, taints=unreachable), resource_version="9"))


def test_nobody_knows_when_a_pod_on_a_lost_node_ends() -> None:
    """Its quota is given back some time after its grace all the same, and that is what is told."""
    view = two_ending()
    lose_node(view)
    told = coming_back(ending_pods(a_limit("team-a", "q", 96, used=64), view))
    assert told == f"groups come back: 32 some minutes after {SECOND}, since n with pod second is not heard of"


def test_those_that_wait_for_it_are_explained_anew() -> None:
    """What the quota refuses in another of its namespaces is told of another time when the node is lost.

    And the three pods that are on it: nobody knows whether they run.
    """
    view, queue = two_ending(), WorkQueue[ObjectRef]("workload", _nothing, clock=FakeClock(), metrics=Metrics("test"))
    view.limits.put(a_limit("team-a", "q", 96, used=96))
    view.limits.put(a_limit("team-b", "q", 0))
    waiting = ref("ReplicaSet", "web", "team-b")
    view.controllers["ReplicaSet"].put(ControllerView(waiting, "1", (32,), wanted=1, failure=DENIED))
    WorkloadMarks(view, Denials(view, RESOURCE), queue)
    lose_node(view)
    assert queue.depth == 4


async def _nothing(key: ObjectRef) -> None:
    del key
