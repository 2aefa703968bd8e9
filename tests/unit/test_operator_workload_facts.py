"""What is known of a workload, found through owners of any depth, and which failures count."""

from dataclasses import replace
from typing import Any

import pytest

from cta_group_core.explain import Stage, explain
from cta_group_core.ids import NodeName
from cta_group_core.names import GATE_PLACEMENT
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.quota import NamespaceShare, QuotaStatus
from cta_group_core.scheduling import TAINT_UNREACHABLE, Taint
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import ObjectRef
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.workload_facts import stage_of, workload_facts
from cta_group_operator.reconcile.workload_marks import WorkloadMarks
from explained import DENIED, DEPLOYMENT, REPLICA_SET, a_world, event
from operator_world import (
    RESOURCE,
    SPACE,
    FakeClock,
    FakeKube,
    a_controller,
    a_node,
    a_pod,
    a_reconciler,
    a_view,
    ref,
)


def test_facts_of_a_deployment() -> None:
    """A Deployment's facts are those of its ReplicaSets and their pods, with its quota now."""
    view = a_world()
    facts = workload_facts(DEPLOYMENT, view, Denials(view, RESOURCE), {})
    assert facts is not None
    assert (facts.wanted, facts.running, facts.groups_per_pod, facts.missing) == (3, 2, 32, 1)
    assert facts.failure is not None
    assert facts.quota is not None
    assert (facts.quota.name, facts.quota.used, facts.quota.groups) == ("q", 64, 64)


def test_only_a_top_is_explained() -> None:
    """A ReplicaSet of a Deployment, a deleted Deployment and one that asks no more have no facts."""
    view = a_world()
    denials = Denials(view, RESOURCE)
    assert workload_facts(REPLICA_SET, view, denials, {}) is None
    view.controllers["Deployment"].remove((SPACE, "web"))
    assert workload_facts(DEPLOYMENT, view, denials, {}) is None


def test_owners_of_kinds_that_are_not_followed() -> None:
    """A chain that ends at a kind of somebody else is explained under that name, with the pods of all below."""
    view = a_view()
    leader = ref("LeaderWorkerSet", "lws", api_version="leaderworkerset.x-k8s.io/v1")
    view.controllers["StatefulSet"].put(a_controller("StatefulSet", "lws-0", owner=leader, wanted=2))
    pod = a_pod("lws-0-1", owner=ref("StatefulSet", "lws-0"))
    view.pods.put(pod)
    assert view.top_owner(pod.ref, pod.owner) == leader
    facts = workload_facts(leader, view, Denials(view, RESOURCE), {pod.ref.uid: "no room"})
    assert facts is not None
    assert (facts.wanted, [(one.stage, one.words) for one in facts.pods]) == (2, [(Stage.NO_ROOM, "no room")])


def test_failures_that_are_over_do_not_count() -> None:
    """A controller that has all its pods, or made one after the event, is not denied any more."""
    view = a_view()
    denials = Denials(view, RESOURCE)
    controller = a_controller("StatefulSet", "set", wanted=2)
    view.controllers["StatefulSet"].put(controller)
    view.failures.put(event("StatefulSet", "set", "2026-05"))
    assert denials.is_denied_groups(controller)
    assert denials.by_namespace() == {SPACE: (32, 32)}
    view.pods.put(a_pod("set-0", owner=controller.ref, created="2026-06"))
    assert denials.failure_of(controller) is None
    assert denials.failure_of(replace(controller, wanted=1)) is None


def test_newest_words_of_a_replica_set() -> None:
    """The condition says that it is denied, the newest event says with which numbers."""
    view = a_world()
    controller = view.controller(REPLICA_SET.uid)
    assert controller is not None
    newer = DENIED.replace("used: requests.nvidia.com/cta-group=64", "used: requests.nvidia.com/cta-group=40")
    view.failures.put(event("ReplicaSet", "web-1", "2026-05"))
    view.failures.put(event("ReplicaSet", "web-1", "2026-06", newer))
    failure = Denials(view, RESOURCE).failure_of(controller)
    assert failure is not None
    assert failure.denial is not None
    assert failure.denial.used == 40
    assert Denials(view, RESOURCE).failure_of(replace(controller, failure="")) is None


@pytest.mark.parametrize(
    ("changes", "refusal", "stage"),
    [
        ({}, None, Stage.WAITING),
        ({}, "no room", Stage.NO_ROOM),
        ({"gates": ()}, None, Stage.WAITING),
        ({"gates": (), "words": "0/1"}, None, Stage.UNSCHEDULED),
        ({"gates": (), "node": NodeName("n")}, None, Stage.STARTING),
        ({"gates": (), "node": NodeName("n"), "phase": "Running"}, None, Stage.RUNNING),
        ({"gates": (), "node": NodeName("n"), "phase": "Running", "words": "ended"}, None, Stage.CRASHING),
        ({"phase": "Failed"}, None, Stage.FAILED),
        ({"phase": "Succeeded"}, None, Stage.DONE),
    ],
)
def test_stages(changes: dict[str, Any], refusal: str | None, stage: Stage) -> None:
    """How far a pod has come is read from gates, node and phase."""
    assert stage_of(a_pod("p", **changes), refusal) is stage


def test_foreign_gates_are_named() -> None:
    """A pod that others hold back too is not chosen a node for, and is told whose gates must go first."""
    view = a_view()
    pod = a_pod("held", gates=("example.com/later", GATE_PLACEMENT))
    view.pods.put(pod)
    facts = workload_facts(pod.ref, view, Denials(view, RESOURCE), {})
    assert facts is not None
    told = "the pod waits for its node to be chosen: other scheduling gates must go first: example.com/later"
    assert explain(facts).message == told


def test_gates_of_others_alone_are_named() -> None:
    """Where placement is off, or the webhook was away, a pod may have no gate of ours and be held all the same."""
    view = a_view()
    pod = a_pod("held", gates=("kueue.x-k8s.io/admission",))
    view.pods.put(pod)
    facts = workload_facts(pod.ref, view, Denials(view, RESOURCE), {})
    assert facts is not None
    assert explain(facts).message.endswith(": other scheduling gates must go first: kueue.x-k8s.io/admission")


def test_pods_that_end_and_pods_on_a_lost_node() -> None:
    """One that is being deleted is none that runs, and one on a lost node may not; both are told with the node."""
    view = a_view()
    a_node(view, "n", 128)
    node = view.nodes.get("n")
    assert node is not None
    unreachable = (Taint(TAINT_UNREACHABLE, "", "NoExecute"),)
    view.nodes.put(replace(node, facts=replace(node.facts, taints=unreachable), resource_version="9"))
    there: dict[str, Any] = {
        "owner": ref("StatefulSet", "set"),
        "gates": (),
        "node": NodeName("n"),
        "phase": "Running",
    }
    view.controllers["StatefulSet"].put(a_controller("StatefulSet", "set", wanted=2))
    view.pods.put(a_pod("set-0", **there))
    view.pods.put(a_pod("set-1", **there, deleting=True, ends="2026-01-01T00:00:30Z"))
    facts = workload_facts(ref("StatefulSet", "set"), view, Denials(view, RESOURCE), {})
    assert facts is not None
    assert explain(facts).message == (
        "1 of 2 pods run, 32 groups each; being deleted: set-1, whose node n is not heard of: it ends when that is "
        "back, or when its Node object is deleted; pod set-0 is on node n, which is not heard of"
    )


def test_a_limit_that_cannot_be_written_is_what_keeps_pods_out() -> None:
    """What the CTAQuota says of its limits is told of whom it denies, when it begins to say so and when it ends."""
    view, clock = a_world(), FakeClock()
    queue = WorkQueue[ObjectRef](
        "workload", a_reconciler(view, FakeKube()).reconcile, clock=clock, metrics=Metrics("t")
    )
    WorkloadMarks(view, Denials(view, RESOURCE), queue)
    quota = view.quotas.get("q")
    assert quota is not None
    refused = Condition(type="Ready", status=ConditionStatus.FALSE, reason="WriteRefused", message="403: no")
    share = NamespaceShare(name=SPACE, hard=64, used=64)
    stuck = replace(quota, status=QuotaStatus(namespaces=(share,), conditions=(refused,)), resource_version="2")
    view.quotas.put(stuck)
    assert queue.depth == 1
    facts = workload_facts(DEPLOYMENT, view, Denials(view, RESOURCE), {})
    assert facts is not None
    assert facts.quota is not None
    assert facts.quota.obstacle == "403: no"
    queue.rest()
    queue.wake()
    view.quotas.put(replace(stuck, resource_version="3"))
    assert queue.depth == 0
    view.quotas.put(replace(quota, status=QuotaStatus(namespaces=(share,)), resource_version="4"))
    assert queue.depth == 1
