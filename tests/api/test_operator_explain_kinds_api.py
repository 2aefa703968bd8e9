"""Workloads of every kind are explained on a real API server: those that are followed and those that are only named."""

from collections.abc import Iterator

import pytest

from cluster_harness.api_client import ApiClient
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from gpu_cluster import OURS, GpuCluster, Json, held
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

pytestmark = pytest.mark.usefixtures("operator")

LWS = "leaderworkerset.x-k8s.io"
WAITS = "waits for room: asked for 32 groups"


@pytest.fixture
def leader_worker_sets(api: ApiClient) -> Iterator[str]:
    """Define the kind LeaderWorkerSet with any content; return the path below which a namespace's objects are."""
    names = {"kind": "LeaderWorkerSet", "plural": "leaderworkersets", "singular": "leaderworkerset"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": LWS, "scope": "Namespaced", "names": names, "versions": [version]}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api.create(path, {"metadata": {"name": f"leaderworkersets.{LWS}"}, "spec": spec})
    served = f"/apis/{LWS}/v1"
    wait_for(lambda: _answers(api, f"{served}/leaderworkersets"), "the kind to be served")
    yield served
    api.delete(f"{path}/leaderworkersets.{LWS}")


def _answers(api: ApiClient, path: str) -> bool:
    try:
        api.get(path)
    except ApiError:  # not known yet, or its storage is being made
        return False
    return True


def owner_of(made: Json, api_version: str, kind: str) -> Json:
    """Return the reference of a controller."""
    meta = made["metadata"]
    return {"apiVersion": api_version, "kind": kind, "controller": True, "name": meta["name"], "uid": meta["uid"]}


def test_a_leader_worker_set(cluster: GpuCluster, leader_worker_sets: str) -> None:
    """Its explanation belongs to it, so that Kubernetes removes it too, and counts whole groups."""
    path = f"{leader_worker_sets}/namespaces/{cluster.namespace}/leaderworkersets"
    body = {"apiVersion": f"{LWS}/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "llm"}}
    made = cluster.api.create(path, body)
    labels = {"app": "llm", "ctagroup.dev/requests": "true"}
    template = {
        "metadata": {"labels": labels, "annotations": {"leaderworkerset.sigs.k8s.io/size": "3"}},
        "spec": cluster.pod_spec(32),
    }
    spec = {"replicas": 2, "serviceName": "llm", "selector": {"matchLabels": {"app": "llm"}}, "template": template}
    owners = [owner_of(made, f"{LWS}/v1", "LeaderWorkerSet")]
    sets = f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets"
    cluster.api.create(sets, {"metadata": {"name": "llm", "ownerReferences": owners}, "spec": spec})
    status = cluster.wait_told("LeaderWorkerSet", "llm", WAITS)
    assert status["owner"] == {"apiVersion": f"{LWS}/v1", "kind": "LeaderWorkerSet", "name": "llm"}
    assert (status["replicasWanted"], status["groupsPerPod"]) == (6, 32)
    told = cluster.api.get(f"{OURS}/namespaces/{cluster.namespace}/ctaworkloads/leaderworkerset-llm")
    assert [one["uid"] for one in told["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]
    cluster.api.delete(f"{sets}/llm?propagationPolicy=Background")
    wait_for(lambda: not cluster.explanation("LeaderWorkerSet", "llm"), "its explanation to go")


def test_jobs_of_a_cron_job(cluster: GpuCluster) -> None:
    """The CronJob is what people know; its Jobs come and go."""
    path = f"/apis/batch/v1/namespaces/{cluster.namespace}"
    template = {
        "metadata": {"labels": {"ctagroup.dev/requests": "true"}},
        "spec": cluster.pod_spec(32, restartPolicy="Never"),
    }
    body = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": {"template": template}}}
    made = cluster.api.create(f"{path}/cronjobs", {"metadata": {"name": "nightly"}, "spec": body})
    job = {"name": "nightly-1", "ownerReferences": [owner_of(made, "batch/v1", "CronJob")]}
    cluster.api.create(f"{path}/jobs", {"metadata": job, "spec": {"template": template}})
    status = cluster.wait_told("CronJob", "nightly", WAITS)
    assert (status["owner"]["kind"], status["replicasWanted"]) == ("CronJob", 1)
    cluster.api.delete(f"{path}/jobs/nightly-1?propagationPolicy=Background")
    wait_for(lambda: not cluster.explanation("CronJob", "nightly"), "its explanation to go")


def test_a_daemon_set(cluster: GpuCluster) -> None:
    """One pod for each node that it is for."""
    cluster.add_node("one", [held(128)])
    cluster.make_controller("DaemonSet", "agents", 32)
    status = cluster.wait_told("DaemonSet", "agents", WAITS)
    assert status["replicasWanted"] == 1


def test_gpus_that_are_out_are_named(cluster: GpuCluster) -> None:
    """A pod that waits since a GPU is sick is told which one, and why."""
    node = cluster.add_node("one", [held(128)], [])
    status = cluster.api.get(f"{OURS}/ctanodes/{node}")["status"]
    status["gpus"][1] |= {"health": "Unhealthy", "healthReason": "XID 79: reboot the node"}
    cluster.api.patch(f"{OURS}/ctanodes/{node}/status", {"status": {"gpus": status["gpus"]}})
    cluster.deploy("web", 32)
    cluster.wait_told("Deployment", "web", "GPU 0: 0 of 128", "GPU 1 is Unhealthy (XID 79: reboot the node)")


@pytest.mark.parametrize(
    ("container", "sentence"),
    [
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}},
            "1 starting (alone: ImagePullBackOff: Back-off pulling image)",
        ),
        (
            {"lastState": {"terminated": {"exitCode": 1}}, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
            "1 starting (alone: container main ended with exit code 1; its log says why: kubectl logs --previous)",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["containerStatuses", "initContainerStatuses"])
def test_trouble_of_containers_is_passed_through(
    cluster: GpuCluster, kind: str, container: Json, sentence: str
) -> None:
    """What kubelet says about a container, also one that runs before the others, is in the sentence."""
    cluster.add_node("one", [])
    cluster.create_pod("alone", 32, initContainers=[{"name": "first", "image": "localhost/none:1"}])
    cluster.wait_bound("alone")
    name = "main" if kind == "containerStatuses" else "first"
    told = {"name": name, "ready": False, "restartCount": 0, "image": "x", "imageID": "", **container}
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/alone/status"
    cluster.api.patch(path, {"status": {"phase": "Pending", kind: [told]}})
    cluster.wait_told("Pod", "alone", sentence.replace("container main", f"container {name}"))
