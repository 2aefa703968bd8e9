"""What may hang later is told: rollouts, autoscalers, and servers whose arguments do not fit, by a real API server."""

import pytest

from cluster_harness.waiting import wait_for
from gpu_cluster import OURS, GpuCluster, Json, condition
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

pytestmark = pytest.mark.usefixtures("operator")


def message(status: Json, kind: str) -> str:
    """Return the words of one condition."""
    found = [one.get("message", "") for one in status.get("conditions", ()) if one["type"] == kind]
    return found[0] if found else ""


def wait_condition(cluster: GpuCluster, name: str, kind: str, expected: tuple[str, str]) -> Json:
    """Wait until a Deployment's explanation has a condition with this status and reason; return the explanation."""

    def told() -> Json | None:
        status = cluster.explanation("Deployment", name)
        return status if condition(status, kind) == expected else None

    what = f"{kind} to be {expected}: {cluster.explanation('Deployment', name)}"
    return wait_for(told, what)


def autoscale(cluster: GpuCluster, target: str, most: int) -> str:
    """Make an autoscaler of a Deployment; return its path."""
    path = f"/apis/autoscaling/v2/namespaces/{cluster.namespace}/horizontalpodautoscalers"
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    cluster.api.create(path, {"metadata": {"name": target}, "spec": {"scaleTargetRef": reference, "maxReplicas": most}})
    return f"{path}/{target}"


def test_a_rollout_that_would_hang_is_told_before(cluster: GpuCluster) -> None:
    """A Deployment that fills its quota and surges is told with numbers, on itself too, until it surges no more."""
    cluster.add_node("one", [])
    quota = cluster.declare_quota(64)
    cluster.wait_enforced(64)
    cluster.deploy("web", 32, replicas=2)
    status = wait_condition(cluster, "web", "RolloutSafe", ("False", "SurgeExceedsQuota"))
    sentence = (
        "a rollout would hang: its first new pod needs 32 beside the 2 pods that run (maxSurge 25%: up to 32), and "
        f"quota 64 has 0 left (CTAQuota {quota}); set maxSurge: 0 and maxUnavailable: 1, or raise its spec.groups to 96"
    )
    assert message(status, "RolloutSafe") == sentence
    assert status["rollout"] == {"surgeReplicas": 1, "surgeGroups": 32, "unavailableReplicas": 0}
    wait_for(lambda: ("SurgeExceedsQuota", sentence) in cluster.events("Deployment", "web"), "an event on it")
    strategy = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    cluster.api.patch(f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web", {"spec": {"strategy": strategy}})
    status = wait_condition(cluster, "web", "RolloutSafe", ("True", "NeedsNoRoom"))
    assert status["rollout"] == {"surgeReplicas": 0, "surgeGroups": 0, "unavailableReplicas": 1}


def test_an_autoscaler_beyond_the_quota_is_told_before(cluster: GpuCluster) -> None:
    """Its ceiling is in the status and compared with the quota; both go with it."""
    quota = cluster.declare_quota(256)
    cluster.wait_enforced(256)
    cluster.deploy("web", 32)
    path = autoscale(cluster, "web", 10)
    status = wait_condition(cluster, "web", "ScaleSafe", ("False", "CeilingExceedsQuota"))
    assert message(status, "ScaleSafe") == (
        f"HorizontalPodAutoscaler web may ask for 10 pods, 320 groups, and CTAQuota {quota} has 256, enough for 8; "
        "set maxReplicas: 8, or raise its spec.groups to 320"
    )
    assert status["ceiling"] == {"replicas": 10, "groups": 320, "setBy": "HorizontalPodAutoscaler web"}
    cluster.api.patch(path, {"spec": {"maxReplicas": 8}})
    wait_condition(cluster, "web", "ScaleSafe", ("True", "CeilingFits"))
    cluster.api.delete(path)
    status = wait_condition(cluster, "web", "ScaleSafe", ("", ""))
    assert "ceiling" not in status


def a_server(groups: int, **container: object) -> Json:
    """Return the container of a vLLM server."""
    limits = {"nvidia.com/cta-group": groups}
    return {"name": "vllm", "image": "vllm/vllm-openai:v0.27.1", "resources": {"limits": limits}, **container}


def test_a_server_is_told_with_its_memory(cluster: GpuCluster) -> None:
    """Engine, version, arguments and memory plan are in the status; arguments that admission fits are no obstacle."""
    cluster.add_node("one", [])
    cluster.deploy("web", 32, containers=[a_server(32, args=["--model=Qwen/Qwen3-4B", "--max-model-len=8192"])])
    status = wait_condition(cluster, "web", "ArgsAligned", ("True", "Changed"))
    server = status["server"]
    assert (server["engine"], server["version"], server["argumentsForm"]) == ("vLLM", "0.27.1", "list")
    assert server["arguments"] == ["--model=Qwen/Qwen3-4B", "--max-model-len=8192"]
    (plan,) = (one for one in server["memory"] if one["product"] == "NVIDIA H100 80GB HBM3")
    assert (plan["sliceMiB"], plan["utilization"]) == (20013, "0.2071")
    assert "--gpu-memory-utilization=0.2071" in message(status, "ArgsAligned")


def test_arguments_that_are_never_edited_are_told(cluster: GpuCluster) -> None:
    """A shell string is told with the flags to add, as a condition and an event of the Deployment."""
    cluster.add_node("one", [])
    command = {"command": ["sh", "-c"], "args": ["vllm serve Qwen/Qwen3-4B"]}
    cluster.deploy("web", 32, containers=[a_server(32, **command)])
    status = wait_condition(cluster, "web", "ArgsAligned", ("False", "ArgsNotPatchable"))
    assert "; add --gpu-memory-utilization=0.2071" in message(status, "ArgsAligned")
    wait_for(lambda: "ArgsNotPatchable" in dict(cluster.events("Deployment", "web")), "an event on the Deployment")


def test_a_template_that_asks_by_annotation_is_explained_as_a_whole(cluster: GpuCluster) -> None:
    """Such a Deployment is followed like any other: its pods are not explained by their ReplicaSet."""
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": {"ctagroup.dev/groups": "32"}},
        "spec": {"containers": [{"name": "main", "image": "localhost/none:1"}]},
    }
    body = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments"
    cluster.api.create(path, {"metadata": {"name": "web"}, "spec": body})
    wait_for(lambda: cluster.explanation("Deployment", "web").get("groupsPerPod") == 32, "its explanation")


def make_set(cluster: GpuCluster, name: str, groups: int, *owners: Json, **annotations: str) -> None:
    """Make a StatefulSet of one pod."""
    labels = {"app": name, "ctagroup.dev/requests": "true"}
    metadata = {
        "labels": labels,
        "annotations": {f"leaderworkerset.sigs.k8s.io/{k}": v for k, v in annotations.items()},
    }
    spec = {
        "replicas": 1,
        "serviceName": name,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": metadata, "spec": cluster.pod_spec(groups)},
    }
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets"
    cluster.api.create(path, {"metadata": {"name": name, "ownerReferences": list(owners)}, "spec": spec})


def test_workers_are_explained_with_their_group(cluster: GpuCluster) -> None:
    """A StatefulSet owned by a leader pod, as LeaderWorkerSet makes them, belongs to what owns the leader."""
    make_set(cluster, "group", 32, size="2")
    pods = f"/api/v1/namespaces/{cluster.namespace}/pods"
    leader = wait_for(lambda: cluster.api.find(f"{pods}/group-0"), "the leader")
    uid = leader["metadata"]["uid"]
    make_set(
        cluster, "workers", 32, {"apiVersion": "v1", "kind": "Pod", "controller": True, "name": "group-0", "uid": uid}
    )
    status = cluster.wait_told("StatefulSet", "group", "2 of 2 pods wait for room")
    assert (status["replicasWanted"], status["groupsPerPod"]) == (2, 32)

    def explained() -> list[str]:
        found = cluster.api.items(f"{OURS}/namespaces/{cluster.namespace}/ctaworkloads")
        return [one["metadata"]["name"] for one in found]

    wait_for(lambda: explained() == ["statefulset-group"], "one explanation for all")
