"""The operator killed, started again, or joined by another: no wrong write, and none at all when nothing changed."""

from functools import partial
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest

from chart_rendering import NAMESPACE
from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from gpu_cluster import OURS, GpuCluster, condition, held, versions
from operator_fixtures import cluster, kinds, operator_kubeconfig
from operator_process import OperatorProcess, running_operator

__all__ = ["cluster", "kinds", "operator_kubeconfig"]


def everything(cluster: GpuCluster) -> dict[str, str]:
    """Return the versions of all objects that the operator could write here."""
    space = f"namespaces/{cluster.namespace}"
    paths = (
        f"/api/v1/{space}/pods",
        f"/api/v1/{space}/resourcequotas",
        f"/api/v1/{space}/events",
        f"/apis/apps/v1/{space}/replicasets",
        f"/apis/apps/v1/{space}/deployments",
        f"{OURS}/{space}/ctaworkloads",
        f"{OURS}/ctaquotas",
    )
    return versions(item for path in paths for item in cluster.api.items(path))


A_SERVER = {
    "name": "vllm",
    "image": "vllm/vllm-openai:v0.27.1",
    "args": ["--model=Qwen/Qwen3-4B"],
    "resources": {"limits": {"nvidia.com/cta-group": 32}},
}


def autoscale(cluster: GpuCluster) -> None:
    """Make an autoscaler of the Deployment that may ask for more than the quota has."""
    path = f"/apis/autoscaling/v2/namespaces/{cluster.namespace}/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    cluster.api.create(path, {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 10}})


def unrelated_event(cluster: GpuCluster, value: str) -> None:
    """Make an event that says of nothing known that it could not create a pod."""
    about = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": cluster.namespace, "name": "x", "uid": "x"}
    body = {"metadata": {"name": f"unrelated-{value}"}, "involvedObject": about, "reason": "FailedCreate"}
    cluster.api.create(f"/api/v1/namespaces/{cluster.namespace}/events", {**body, "message": "none of ours"})


def settled_workload(cluster: GpuCluster) -> str:
    """Make a quota, a full node, a Deployment with a placed, a waiting and a refused pod; wait until all is told."""
    node = cluster.add_node("full", [held(96)])
    quota = cluster.declare_quota(64)
    cluster.wait_enforced(64)
    autoscale(cluster)
    cluster.deploy("web", 32, replicas=3, containers=[A_SERVER])
    cluster.wait_told("Deployment", "web", "short 32")
    wait_for(
        lambda: condition(cluster.explanation("Deployment", "web"), "ScaleSafe") == ("False", "CeilingExceedsQuota"),
        "the autoscaler to be told of",
    )
    wait_for(
        lambda: condition(cluster.explanation("Deployment", "web"), "Placed") == ("False", "NoRoom"),
        "one pod to be placed and one to wait",
    )
    wait_for(lambda: cluster.quota_status(quota).get("pending") == 32, "the quota to tell")
    return node


@pytest.mark.usefixtures("kinds")
def test_nothing_is_written_when_nothing_changed(
    cluster: GpuCluster, control_plane: ControlPlane, operator_kubeconfig: Path, tmp_path: Path
) -> None:
    """An operator that starts, and one that must look at everything again, write nothing that is right already."""
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path) as first:
        node = settled_workload(cluster)
        # The controllers' own retries write events; without them whatever changes is the operator's doing.
        control_plane.stop_component("kube-controller-manager")
        try:
            first.end(SIGKILL)
            before = everything(cluster)
            with running_operator(operator_kubeconfig, NAMESPACE, tmp_path) as second:
                for times in range(1, 4):
                    touch_all(cluster, node, str(times))
                    wait_for_rounds(second, times)
                after = everything(cluster)
                assert second.end() == 0
        finally:
            control_plane.start_component("kube-controller-manager")
    touched = touched_uids(cluster)
    assert {uid: version for uid, version in after.items() if uid not in touched} == {
        uid: version for uid, version in before.items() if uid not in touched
    }


def wait_for_rounds(operator: OperatorProcess, count: int) -> None:
    """Wait until every kind of work had at least so many rounds."""
    for kind in ("workload", "quota", "placement", "node"):
        series = f'cta_group_reconcile_seconds_count{{kind="{kind}"}}'
        wait_for(partial(_at_least, operator, series, count), f"{count} rounds of {kind}")


def _at_least(operator: OperatorProcess, series: str, count: int) -> bool:
    return (operator.metric(series) or 0) >= count


def touch_all(cluster: GpuCluster, node: str, value: str) -> None:
    """Change an annotation of the Deployment and of the quota, and a label of the Node, so that all is looked at.

    An event of something else comes as well.
    """
    note = {"metadata": {"annotations": {"test": value}}}
    cluster.api.patch(f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web", note)
    cluster.api.patch(f"{OURS}/ctaquotas/{cluster.quotas[0]}", note)
    cluster.api.patch(f"{OURS}/ctanodes/{node}", note)
    cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"test-touches": value}}})
    unrelated_event(cluster, value)


def touched_uids(cluster: GpuCluster) -> set[str]:
    """Return the uids of what the test itself touches."""
    paths = (
        f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web",
        f"{OURS}/ctaquotas/{cluster.quotas[0]}",
    )
    events = cluster.api.items(f"/api/v1/namespaces/{cluster.namespace}/events")
    unrelated = {one["metadata"]["uid"] for one in events if one["metadata"]["name"].startswith("unrelated-")}
    return unrelated | {cluster.api.get(path)["metadata"]["uid"] for path in paths}


@pytest.mark.usefixtures("kinds")
def test_killed_between_release_and_start(cluster: GpuCluster, operator_kubeconfig: Path, tmp_path: Path) -> None:
    """Room promised by an operator that was killed is still promised for the next one."""
    node = cluster.add_node("one", [])
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path) as first:
        cluster.create_pod("first", 96)
        cluster.wait_bound("first")
        first.end(SIGKILL)
    cluster.create_pod("second", 64)
    cluster.create_pod("third", 32)
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path):
        assert cluster.wait_bound("third") == node
        cluster.wait_told("Pod", "second", "GPU 0: 0 of 128")
    assert cluster.node_of("second") is None


@pytest.mark.usefixtures("kinds")
def test_limits_stand_while_nobody_runs(cluster: GpuCluster, operator_kubeconfig: Path, tmp_path: Path) -> None:
    """The quota is enforced without the operator; what was deleted meanwhile is cleaned up by the next one."""
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path):
        quota = cluster.declare_quota(32)
        cluster.wait_enforced(32)
    cluster.create_pod("first", 32)
    with pytest.raises(Exception, match="exceeded quota: cta-group"):
        cluster.create_pod("second", 32)
    cluster.api.delete(f"{OURS}/ctaquotas/{quota}")
    assert cluster.limit() == 32
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path):
        wait_for(lambda: cluster.limit() is None, "the limit to be removed")


@pytest.mark.usefixtures("kinds")
def test_second_replica_takes_over(cluster: GpuCluster, operator_kubeconfig: Path, tmp_path: Path) -> None:
    """Of two replicas one leads; the other is ready, tells nothing of the cluster, and works when the first dies."""
    second = None
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path) as first:
        try:
            second = OperatorProcess(operator_kubeconfig, NAMESPACE, tmp_path)
            wait_for(second.ready, "the second to be ready")
            wait_for(lambda: second.metric("cta_group_leader") == 0, "the second to say so")
            assert second.metric("cta_group_placement_waiting") is None
            wait_for(lambda: first.leads, "the first to say so")
            first.end(SIGKILL)
            quota = cluster.declare_quota(16)
            cluster.wait_enforced(16)
            wait_for(lambda: second.leads, "the second to say that it leads")
            assert second.end(SIGTERM) == 0
            assert holder(cluster.api, NAMESPACE) == ""
        finally:
            if second is not None:
                second.end(SIGKILL)
    assert quota


def holder(api: ApiClient, namespace: str) -> Any:
    """Return who holds the lease."""
    found = api.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/cta-group-operator")
    return found["spec"].get("holderIdentity")


def test_placement_off(cluster: GpuCluster, operator_kubeconfig: Path, tmp_path: Path) -> None:
    """With placement off a gate that is there is taken off without choosing a node."""
    node = cluster.add_node("one", [held(128)])
    flags = ("--placement=off",)
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path, *flags):
        cluster.create_pod("free", 32)
        assert cluster.wait_bound("free") == node
    assert "affinity" not in cluster.pod("free")["spec"]
