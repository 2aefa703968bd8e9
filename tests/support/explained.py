"""Workloads of tests: what is explained of them, and what a reconciler wrote, as the watch would tell it."""

from cta_group_core.explain import PodFacts, Stage, WorkloadFacts, explain
from cta_group_core.ids import NodeName
from cta_group_core.workload import WorkloadStatus, object_name
from cta_group_operator.ports import FailureEvent, ObjectRef, WorkloadView
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import CTA_WORKLOADS
from operator_world import SPACE, FakeKube, a_controller, a_limit, a_pod, a_quota, a_view, ref

DENIED = (
    'pods "x" is forbidden: exceeded quota: cta-group, requested: requests.nvidia.com/cta-group=32, '
    "used: requests.nvidia.com/cta-group=64, limited: requests.nvidia.com/cta-group=64"
)
DEPLOYMENT = ref("Deployment", "web")
REPLICA_SET = ref("ReplicaSet", "web-1")


def pods(*stages: Stage, words: str = "") -> tuple[PodFacts, ...]:
    """Return one pod per stage."""
    return tuple(PodFacts(f"web-{place}", stage, words) for place, stage in enumerate(stages))


def told(facts: WorkloadFacts) -> tuple[str, str, str]:
    """Return sentence and both reasons."""
    answer = explain(facts)
    return answer.message, answer.admissible.reason, answer.placed.reason


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


def hear_explanation(view: ClusterView, kube: FakeKube, top: ObjectRef) -> WorkloadStatus:
    """Put the CTAWorkload of a top owner into the view as it was written, and return its status."""
    name = object_name(top.kind, top.name, top.api_version)
    path = CTA_WORKLOADS.path(top.namespace, name)
    written = kube.objects[f"{path}/status"]
    status = WorkloadStatus.model_validate(written["status"])
    ref = ObjectRef(CTA_WORKLOADS.group_version, CTA_WORKLOADS.kind, top.namespace, name, f"of-{top.uid}")
    view.workloads.put(WorkloadView(ref, written["metadata"]["resourceVersion"], top.uid, status))
    return status
