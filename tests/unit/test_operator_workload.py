"""What is known of a workload, found through owners of any depth, and which failures count."""

from dataclasses import replace
from typing import Any

import pytest

from cta_group_core.explain import Stage, explain
from cta_group_core.ids import NodeName
from cta_group_core.names import GATE_PLACEMENT
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.rollout import rolling
from cta_group_core.scheduling import TAINT_UNREACHABLE, Taint
from cta_group_core.workload import ServerStatus
from cta_group_operator.errors import Conflict
from cta_group_operator.ports import AutoscalerView, FailureEvent, ObjectRef, WorkloadView
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.figures import workload_figures
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.workload_facts import stage_of, workload_facts
from explained import hear_explanation
from operator_world import (
    RESOURCE,
    SPACE,
    FakeKube,
    FakeServers,
    a_controller,
    a_limit,
    a_node,
    a_pod,
    a_quota,
    a_reconciler,
    a_view,
    ref,
)

DENIED = (
    'pods "x" is forbidden: exceeded quota: cta-group, requested: requests.nvidia.com/cta-group=32, '
    "used: requests.nvidia.com/cta-group=64, limited: requests.nvidia.com/cta-group=64"
)
DEPLOYMENT = ref("Deployment", "web")
REPLICA_SET = ref("ReplicaSet", "web-1")


def a_world(*, denied: bool = True, used: int = 64) -> ClusterView:
    """Return a Deployment of three, whose ReplicaSet made two pods and is denied the third."""
    view = a_view()
    view.quotas.put(a_quota("q", 64, SPACE))
    view.limits.put(a_limit(SPACE, "q", 64, used=used))
    view.controllers["Deployment"].put(a_controller("Deployment", "web", wanted=3))
    failure = DENIED if denied else ""
    replica_set = a_controller("ReplicaSet", "web-1", owner=DEPLOYMENT, wanted=3, failure=failure)
    view.controllers["ReplicaSet"].put(replica_set)
    for name in ("a", "b"):
        view.pods.put(a_pod(name, owner=REPLICA_SET, gates=(), node=NodeName("n"), phase="Running"))
    return view


def event(kind: str, name: str, last: str, text: str = DENIED) -> FailureEvent:
    """Return an event that a controller could not create a pod."""
    about = ref(kind, name)
    return FailureEvent(ref("Event", f"{name}.{last}"), "1", about.uid, text, last)


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


OTHERS_JOB = ref("Job", "train", api_version="batch.volcano.sh/v1alpha1")


async def test_two_kinds_of_one_name_have_an_explanation_each() -> None:
    """Kubernetes' Job and Volcano's of the same name do not take each other's explanation away."""
    view, kube = a_view(), FakeKube()
    job = replace(a_controller("Job", "train"), ref=ref("Job", "train", api_version="batch/v1"))
    view.controllers["Job"].put(job)
    view.pods.put(a_pod("train-0", owner=OTHERS_JOB))
    for top in (job.ref, OTHERS_JOB):
        await a_reconciler(view, kube).reconcile(top)
        hear_explanation(view, kube, top)
    assert [path.rpartition("/")[2] for verb, path in kube.writes if verb == "create" and "ctaw" in path] == [
        "job-train",
        "job.batch.volcano.sh-train",
    ]
    assert "delete" not in {verb for verb, _ in kube.writes}


async def test_two_groups_with_a_kind_of_one_name_do_not_fight() -> None:
    """Of two other groups' kinds that have one name, the workload that was explained first keeps it."""
    view, kube = a_view(), FakeKube()
    first, second = (replace(ref("Model", "m", api_version=f"{group}/v1"), uid=group) for group in ("a.org", "b.org"))
    view.pods.put(a_pod("one", owner=first))
    view.pods.put(a_pod("two", owner=second))
    explainer = a_reconciler(view, kube)
    await explainer.reconcile(first)
    hear_explanation(view, kube, first)
    written = len(kube.writes)
    assert await explainer.reconcile(second) == 30.0
    assert len(kube.writes) == written
    view.pods.remove((SPACE, "one"))
    with pytest.raises(Conflict):
        await explainer.reconcile(second)  # the first is gone: its explanation goes, and then there is room
    assert kube.writes[written:] == [("delete", f"/apis/ctagroup.dev/v1alpha1/namespaces/{SPACE}/ctaworkloads/model-m")]


async def test_explanation_is_written_once() -> None:
    """The first round creates, tells and announces; the next, before the watch shows anything, writes nothing."""
    view, kube = a_world(), FakeKube()
    explainer = a_reconciler(view, kube)
    await explainer.reconcile(DEPLOYMENT)
    path = f"/apis/ctagroup.dev/v1alpha1/namespaces/{SPACE}/ctaworkloads"
    assert [write for write in kube.writes if "events" not in write[1]] == [
        ("create", f"{path}/deployment-web"),
        ("merge", f"{path}/deployment-web/status"),
    ]
    owner = kube.objects[f"{path}/deployment-web"]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"]) == ("Deployment", DEPLOYMENT.uid)
    written = len(kube.writes)
    await explainer.reconcile(DEPLOYMENT)
    assert len(kube.writes) == written


async def test_a_deleted_explanation_is_made_again() -> None:
    """When somebody deletes an explanation it is written anew."""
    view, kube = a_world(), FakeKube()
    explainer = a_reconciler(view, kube)
    await explainer.reconcile(DEPLOYMENT)
    kube.objects.clear()
    told = ref("CTAWorkload", "deployment-web")
    explainer.deleted(WorkloadView(told, "200", DEPLOYMENT.uid, None))
    await explainer.reconcile(DEPLOYMENT)
    assert [verb for verb, path in kube.writes if path.endswith("deployment-web")] == ["create", "create"]


async def test_explanations_go_with_namespaces_and_requests() -> None:
    """In a namespace that goes nothing is written; a workload that asks no more loses its explanation."""
    view, kube = a_world(), FakeKube()
    existing = WorkloadView(ref("CTAWorkload", "deployment-web"), "5", DEPLOYMENT.uid, None)
    view.workloads.put(existing)
    view.controllers["Deployment"].remove((SPACE, "web"))
    path = f"/apis/ctagroup.dev/v1alpha1/namespaces/{SPACE}/ctaworkloads/deployment-web"
    kube.objects[path] = {}
    await a_reconciler(view, kube).reconcile(DEPLOYMENT)
    assert kube.writes == [("delete", path)]
    gone = ObjectRef("apps/v1", "Deployment", "no-such-namespace", "web", "u")
    await a_reconciler(view, kube).reconcile(gone)
    assert len(kube.writes) == 1


ALIGNED = Condition(type="ArgsAligned", status=ConditionStatus.FALSE, reason="ArgsNotPatchable", message="add --x=1")
SERVER = ServerStatus(engine="vLLM", container="vllm", version="0.27.1", arguments_form="shell")


async def test_what_vanishes_is_taken_away() -> None:
    """A ceiling whose autoscaler is gone, and a server that is none any more, leave the status."""
    view, kube = a_world(denied=False), FakeKube()
    view.controllers["Deployment"].put(
        replace(a_controller("Deployment", "web", wanted=2), template=b"{}", resource_version="2")
    )
    view.autoscalers.put(AutoscalerView(ref("HorizontalPodAutoscaler", "web"), "1", "Deployment", "web", 10))
    servers = FakeServers((SERVER, ALIGNED))
    explainer = a_reconciler(view, kube, servers)
    await explainer.reconcile(DEPLOYMENT)
    path = f"/apis/ctagroup.dev/v1alpha1/namespaces/{SPACE}/ctaworkloads/deployment-web"
    status = kube.objects[path + "/status"]["status"]
    assert status["ceiling"] == {"replicas": 10, "groups": 320, "setBy": "HorizontalPodAutoscaler web"}
    assert (status["server"]["version"], status["server"]["engine"]) == ("0.27.1", "vLLM")
    view.autoscalers.remove((SPACE, "web"))
    servers.found = (SERVER.model_copy(update={"version": None}), ALIGNED)
    await explainer.reconcile(DEPLOYMENT)
    status = kube.objects[path + "/status"]["status"]
    assert status["ceiling"] is None
    assert status["server"]["version"] is None  # in a merge patch: taken away


async def test_warnings_are_told_and_block_nothing() -> None:
    """Arguments that do not fit are an event and a condition; the workload does not count as blocked for them."""
    view, kube = a_world(denied=False), FakeKube()
    view.controllers["Deployment"].put(
        replace(a_controller("Deployment", "web", wanted=2), template=b"{}", resource_version="2")
    )
    explainer = a_reconciler(view, kube, FakeServers((SERVER, ALIGNED)))
    await explainer.reconcile(DEPLOYMENT)
    events = [body for path, body in kube.objects.items() if "/events/" in path]
    assert [(one["reason"], one["message"]) for one in events] == [("ArgsNotPatchable", "add --x=1")]
    hear_explanation(view, kube, DEPLOYMENT)
    assert [one.blocked for one in workload_figures(view)] == [None]


async def test_one_event_on_a_pod_that_waits_for_room() -> None:
    """The placement says on the pod why it waits; its explanation does not say it once more there."""
    view, kube = a_view(), FakeKube()
    pod = a_pod("alone")
    view.pods.put(pod)
    explainer = a_reconciler(view, kube, refusals={pod.ref.uid: "no room"})
    await explainer.reconcile(pod.ref)
    assert [path for verb, path in kube.writes if "/events/" in path] == []
    hear_explanation(view, kube, pod.ref)
    assert [one.blocked for one in workload_figures(view)] == ["NoRoom"]


async def test_a_rollout_is_looked_at_again() -> None:
    """Whether one finds room changes with every other pod, so the answer is made anew from time to time."""
    view, kube = a_world(denied=False), FakeKube()
    explainer = a_reconciler(view, kube)
    view.controllers["Deployment"].put(a_controller("Deployment", "web", wanted=2, rollout=rolling(2, 0, 1)))
    assert await explainer.reconcile(DEPLOYMENT) is None
    replaced = replace(a_controller("Deployment", "web", wanted=2, rollout=rolling(2, 1, 0)), resource_version="2")
    view.controllers["Deployment"].put(replaced)
    assert await explainer.reconcile(DEPLOYMENT) == 30
