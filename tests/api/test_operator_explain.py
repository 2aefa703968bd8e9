"""A workload that does not run is explained on a real API server, and goes on by itself when the reason is gone."""

import pytest

from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_SHAPE, LABEL_REQUESTS
from gpu_cluster import OURS, GpuCluster, condition, held
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig
from operator_process import OperatorProcess

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

pytestmark = pytest.mark.usefixtures("operator")


def test_denial_is_explained_and_ends(cluster: GpuCluster, operator: OperatorProcess) -> None:
    """A Deployment beyond its quota is told with numbers, as an event and a metric too; more quota creates the pod."""
    quota = cluster.declare_quota(64)
    cluster.wait_enforced(64)
    cluster.deploy("web", 32, replicas=3)
    status = cluster.wait_told("Deployment", "web", "needs 32, quota 64, used 64, short 32", f"CTAQuota {quota}")
    assert condition(status, "Admissible") == ("False", "QuotaExceeded")
    assert (status["groupsPerPod"], status["replicasWanted"], status["replicasRunning"]) == (32, 3, 0)
    events = wait_for(
        lambda: [told for reason, told in cluster.events("Deployment", "web") if reason == "QuotaExceeded"],
        "an event on the Deployment",
    )
    assert "needs 32, quota 64, used 64, short 32" in events[0]
    blocked = f'{{kind="Deployment",name="web",namespace="{cluster.namespace}",reason="QuotaExceeded"}}'
    wait_for(lambda: operator.metric(f"cta_group_workload_blocked{blocked}") == 1, "the metric")
    wait_for(lambda: cluster.quota_status(quota).get("pending") == 32, "the quota to tell")

    cluster.api.patch(f"{OURS}/ctaquotas/{quota}", {"spec": {"groups": 96}})
    wait_for(lambda: len(cluster.pods()) == 3, "the third pod to be created")
    told = wait_for(
        lambda: condition(cluster.explanation("Deployment", "web"), "Admissible")[0] == "True", "the denial to be over"
    )
    assert told
    wait_for(lambda: operator.metric(f"cta_group_workload_blocked{blocked}") is None, "the metric to be gone")


def test_groups_of_a_pod_that_is_being_deleted(cluster: GpuCluster) -> None:
    """A pod is charged until it is gone: the sentence names it, and the latest moment of its end."""
    cluster.add_node("one", [])
    cluster.declare_quota(32)
    cluster.wait_enforced(32)
    cluster.create_pod("first", 32)
    cluster.wait_bound("first")  # no kubelet is there to end it
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/first"
    cluster.api.delete(f"{path}?gracePeriodSeconds=600")
    until = cluster.api.get(path)["metadata"]["deletionTimestamp"]
    cluster.deploy("web", 32)
    cluster.wait_told("Deployment", "web", f"groups come back: 32 when pod first has ended, by {until}")
    cluster.api.delete(f"{path}?gracePeriodSeconds=0")
    wait_for(lambda: [pod["metadata"]["name"] for pod in cluster.pods()] != ["first"], "the pod to go")
    wait_for(lambda: len(cluster.pods()) == 1, "the pod of the Deployment")


def test_stateful_set_and_job_are_explained(cluster: GpuCluster) -> None:
    """Controllers that have no condition for it are explained by their events."""
    cluster.declare_quota(32)
    cluster.wait_enforced(32)
    cluster.create_pod("other", 32)
    labels = {"app": "set", "ctagroup.dev/requests": "true"}
    template = {"metadata": {"labels": labels}, "spec": cluster.pod_spec(32)}
    spec = {"replicas": 2, "serviceName": "set", "selector": {"matchLabels": {"app": "set"}}, "template": template}
    cluster.api.create(
        f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets", {"metadata": {"name": "set"}, "spec": spec}
    )
    job = {"metadata": {"labels": labels}, "spec": cluster.pod_spec(32, restartPolicy="Never")}
    cluster.api.create(
        f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs", {"metadata": {"name": "job"}, "spec": {"template": job}}
    )
    status = cluster.wait_told("StatefulSet", "set", "needs 32, quota 32, used 32, short 32")
    assert status["replicasWanted"] == 2
    status = cluster.wait_told("Job", "job", "the pod cannot be created: needs 32, quota 32, used 32, short 32")
    assert status["owner"] == {"apiVersion": "batch/v1", "kind": "Job", "name": "job"}


def test_explanation_goes_with_its_workload(cluster: GpuCluster) -> None:
    """The explanation of a Deployment is removed together with it, and not before."""
    cluster.deploy("web", 32)
    cluster.wait_told("Deployment", "web", "waits for room")
    cluster.api.delete(f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web")
    wait_for(lambda: not cluster.explanation("Deployment", "web"), "the explanation to be removed")


def test_explanation_of_a_workload_made_again(cluster: GpuCluster) -> None:
    """A Deployment that is deleted and made again under its name gets an explanation of its own."""
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web"
    cluster.deploy("web", 32)
    cluster.wait_told("Deployment", "web", "asked for 32 groups")
    cluster.api.delete(f"{path}?propagationPolicy=Background")
    cluster.deploy("web", 64)
    cluster.wait_told("Deployment", "web", "asked for 64 groups")
    made = cluster.api.get(f"{OURS}/namespaces/{cluster.namespace}/ctaworkloads/deployment-web")
    assert made["metadata"]["ownerReferences"][0]["uid"] == cluster.api.get(path)["metadata"]["uid"]


def test_a_pod_of_its_own(cluster: GpuCluster) -> None:
    """A pod that nobody controls has an explanation too, and an event on itself."""
    cluster.create_pod("alone", 32)
    status = cluster.wait_told("Pod", "alone", "the pod waits for room")
    assert status["owner"] == {"apiVersion": "v1", "kind": "Pod", "name": "alone"}
    wait_for(lambda: "NoRoomForGroups" in dict(cluster.events("Pod", "alone")), "an event on the pod")


def test_the_pod_in_the_way_is_named(cluster: GpuCluster) -> None:
    """Where moving one pod would make room, the sentence says which."""
    node = cluster.add_node("one", [held(64, "a")], [held(40, "b"), held(24, "c")])
    cluster.wait_known(node)  # the event tells what is known at first
    cluster.deploy("web", 96)
    moving = f"moving pod b of namespace elsewhere (40 groups) from GPU 1 of {node} to another GPU would make room"
    cluster.wait_told("Deployment", "web", "GPU 0-1: 64 of 128 each", moving)
    wait_for(
        lambda: any(moving in told for reason, told in cluster.events("Deployment", "web") if reason == "NoRoom"),
        "an event on the Deployment",
    )


def test_a_waiting_pod_has_one_event(cluster: GpuCluster) -> None:
    """A pod of its own that waits is told once, also when its explanation was written."""
    cluster.create_pod("alone", 32)
    cluster.wait_told("Pod", "alone", "the pod waits for room")
    wait_for(lambda: cluster.events("Pod", "alone"), "an event on the pod")
    cluster.create_pod("next", 32)
    cluster.wait_told("Pod", "next", "the pod waits for room")
    assert [reason for reason, _ in cluster.events("Pod", "alone")] == ["NoRoomForGroups"]


def test_other_workloads_are_not_touched(cluster: GpuCluster) -> None:
    """A Deployment that asks for no groups has no explanation, also after one that asks has."""
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments"
    template = {
        "metadata": {"labels": {"app": "plain"}},
        "spec": {"containers": [{"name": "main", "image": "localhost/none:1"}]},
    }
    cluster.api.create(
        path,
        {
            "metadata": {"name": "plain"},
            "spec": {"selector": {"matchLabels": {"app": "plain"}}, "template": template},
        },
    )
    cluster.deploy("web", 32)
    cluster.wait_told("Deployment", "web", "waits for room")
    found = cluster.api.items(f"{OURS}/namespaces/{cluster.namespace}/ctaworkloads")
    assert [one["metadata"]["name"] for one in found] == ["deployment-web"]


def generation(cluster: GpuCluster, node: str, capability: str) -> None:
    """Let the GPUs of a node have another compute capability."""
    path = f"{OURS}/ctanodes/{node}"
    gpus = [gpu | {"computeCapability": capability} for gpu in cluster.api.get(path)["status"]["gpus"]]
    cluster.api.patch(f"{path}/status", {"status": {"gpus": gpus}})


def test_a_pod_without_the_clusters_that_it_needs(cluster: GpuCluster) -> None:
    """It is placed all the same, where nothing else is; condition and event say so, until its GPU has them."""
    node = cluster.add_node("old", [])
    generation(cluster, node, "8.0")
    metadata = {"name": "shaped", "labels": {LABEL_REQUESTS: "true"}, "annotations": {ANNOTATION_SHAPE: "2,2"}}
    made = {"metadata": metadata, "spec": cluster.pod_spec(32)}
    cluster.api.create(f"/api/v1/namespaces/{cluster.namespace}/pods", made)
    assert cluster.wait_bound("shaped") == node

    def told() -> tuple[str, str]:
        return condition(cluster.explanation("Pod", "shaped"), "ClustersAvailable")

    wait_for(lambda: told() == ("False", "NoThreadBlockClusters"), "the condition")
    wait_for(
        lambda: [words for reason, words in cluster.events("Pod", "shaped") if reason == "NoThreadBlockClusters"],
        "the event",
    )
    generation(cluster, node, "9.0")
    wait_for(lambda: told() == ("", ""), "the condition to go")
