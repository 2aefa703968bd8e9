"""What is written about a workload, and when."""

from dataclasses import replace

import pytest

from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.rollout import rolling
from cta_group_core.workload import ServerStatus
from cta_group_operator.errors import Conflict
from cta_group_operator.ports import AutoscalerView, ObjectRef, WorkloadView
from cta_group_operator.reconcile.figures import workload_figures
from explained import DEPLOYMENT, a_world, hear_explanation
from operator_world import (
    SPACE,
    FakeKube,
    FakeServers,
    a_controller,
    a_pod,
    a_reconciler,
    a_view,
    ref,
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
