"""CTAQuota on a real API server: ordinary ResourceQuotas, whose sum never exceeds it, and what it says about itself."""

from typing import Any

import pytest

from cluster_harness.api_client import ApiClient
from cluster_harness.waiting import wait_for
from gpu_cluster import OURS, GpuCluster, condition
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig, second_namespace
from operator_process import OperatorProcess

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig", "second_namespace"]

pytestmark = pytest.mark.usefixtures("operator")
KEY = "requests.nvidia.com/cta-group"


def status_of(api: ApiClient, quota: str) -> dict[str, Any]:
    """Return the status of a CTAQuota."""
    status: dict[str, Any] = api.get(f"{OURS}/ctaquotas/{quota}").get("status", {})
    return status


def wait_ready(api: ApiClient, quota: str) -> dict[str, Any]:
    """Wait until a CTAQuota says that it is enforced, and return its status."""
    wait_for(
        lambda: condition(status_of(api, quota), "Ready") == ("True", "Enforced"),
        f"CTAQuota {quota} to be enforced: {status_of(api, quota)}",
    )
    return status_of(api, quota)


def test_one_namespace_gets_a_resource_quota(cluster: GpuCluster) -> None:
    """A CTAQuota of one namespace becomes its ResourceQuota, labelled, and says that it is enforced."""
    quota = cluster.declare_quota(256)
    cluster.wait_enforced(256)
    status = wait_ready(cluster.api, quota)
    found = cluster.api.get(f"/api/v1/namespaces/{cluster.namespace}/resourcequotas/cta-group")
    assert found["metadata"]["labels"]["ctagroup.dev/quota"] == quota
    assert (status["groups"], status["used"], status["pending"]) == (256, 0, 0)
    assert status["namespaces"] == [{"name": cluster.namespace, "hard": 256, "used": 0, "pending": 0}]
    assert "finalizers" not in cluster.api.get(f"{OURS}/ctaquotas/{quota}")["metadata"]


def test_two_namespaces_share(cluster: GpuCluster, second_namespace: str) -> None:
    """Two namespaces share evenly at first; a denied pod gets what the other does not use, and the sum stays."""
    quota = cluster.declare_quota(128, cluster.namespace, second_namespace)
    cluster.wait_enforced(64)
    cluster.wait_enforced(64, second_namespace)
    cluster.deploy("web", 32, replicas=3)
    wait_for(lambda: len(cluster.pods()) == 3, "all three pods to be created")
    wait_for(lambda: status_of(cluster.api, quota).get("used") == 96, "the use to be told")
    status = wait_ready(cluster.api, quota)
    hards = {one["name"]: one["hard"] for one in status["namespaces"]}
    assert sum(hards.values()) == 128
    assert hards[cluster.namespace] >= 96


def test_namespace_by_label(cluster: GpuCluster) -> None:
    """A selector takes a namespace when it gets the label, and lets it go when the label is taken away."""
    api, name = cluster.api, f"label-{cluster.namespace}"
    cluster.quotas.append(name)
    spec = {"groups": 64, "namespaceSelector": {"matchLabels": {"team": name}}}
    kind = {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTAQuota"}
    api.create(f"{OURS}/ctaquotas", {**kind, "metadata": {"name": name}, "spec": spec})
    wait_for(lambda: condition(status_of(api, name), "Ready") == ("False", "NoNamespace"), "no namespace yet")
    api.patch(f"/api/v1/namespaces/{cluster.namespace}", {"metadata": {"labels": {"team": name}}})
    cluster.wait_enforced(64)
    api.patch(f"/api/v1/namespaces/{cluster.namespace}", {"metadata": {"labels": {"team": None}}})
    wait_for(lambda: cluster.limit() is None, "the limit to be removed")


def test_deleting_removes_its_limits_only(cluster: GpuCluster) -> None:
    """A deleted CTAQuota takes its ResourceQuotas along, and leaves one that people made."""
    api, path = cluster.api, f"/api/v1/namespaces/{cluster.namespace}/resourcequotas"
    api.create(path, {"metadata": {"name": "theirs"}, "spec": {"hard": {KEY: "1000"}}})
    quota = cluster.declare_quota(64)
    cluster.wait_enforced(64)
    api.delete(f"{OURS}/ctaquotas/{quota}")
    wait_for(lambda: cluster.limit() is None, "the limit to be removed")
    assert [one["metadata"]["name"] for one in api.items(path)] == ["theirs"]


def test_drift_is_repaired(cluster: GpuCluster) -> None:
    """A limit that somebody changed or deleted is put right again."""
    cluster.declare_quota(64)
    cluster.wait_enforced(64)
    path = f"/api/v1/namespaces/{cluster.namespace}/resourcequotas/cta-group"
    cluster.api.patch(path, {"spec": {"hard": {KEY: "9999"}}})
    wait_for(lambda: cluster.limit() == 64, "the limit to be put right")
    cluster.api.delete(path)
    cluster.wait_enforced(64)


def test_a_namespace_belongs_to_one_quota(cluster: GpuCluster) -> None:
    """Of two CTAQuotas that name a namespace the older keeps it, the newer says so, and gets it when the older goes."""
    older = cluster.declare_quota(64, name=f"a-older-{cluster.namespace}")
    cluster.wait_enforced(64)
    newer = cluster.declare_quota(32, name=f"b-newer-{cluster.namespace}")
    wait_for(
        lambda: condition(status_of(cluster.api, newer), "NamespaceConflict") == ("True", "KeptByOlder"),
        "the newer to say that it lost",
    )
    assert cluster.limit() == 64
    cluster.api.delete(f"{OURS}/ctaquotas/{older}")
    cluster.wait_enforced(32)


def test_what_people_made_is_told(cluster: GpuCluster) -> None:
    """A ResourceQuota on the same resource is told, and one with a key that Kubernetes ignores says which to write."""
    api, path = cluster.api, f"/api/v1/namespaces/{cluster.namespace}/resourcequotas"
    quota = cluster.declare_quota(64)
    api.create(path, {"metadata": {"name": "theirs"}, "spec": {"hard": {"limits.nvidia.com/cta-group": "8"}}})
    wait_for(
        lambda: condition(status_of(api, quota), "ForeignResourceQuota") == ("True", "KeyNotEnforced"),
        "the ignored key to be told",
    )
    api.delete(f"{path}/theirs")
    api.create(path, {"metadata": {"name": "other"}, "spec": {"hard": {KEY: "8"}}})
    wait_for(
        lambda: condition(status_of(api, quota), "ForeignResourceQuota") == ("True", "AlsoLimits"),
        "the second limit to be told",
    )


def test_lowering_below_use(cluster: GpuCluster) -> None:
    """A quota lowered below what pods hold says so, keeps the pods, and limits to its groups."""
    quota = cluster.declare_quota(128)
    cluster.wait_enforced(128)
    cluster.create_pod("a", 64)
    wait_for(lambda: status_of(cluster.api, quota).get("used") == 64, "the pod to be counted")
    cluster.api.patch(f"{OURS}/ctaquotas/{quota}", {"spec": {"groups": 32}})
    cluster.wait_enforced(32)
    wait_for(
        lambda: condition(status_of(cluster.api, quota), "Overcommitted") == ("True", "QuotaLowered"),
        "the quota to say that it is overcommitted",
    )
    assert [pod["metadata"]["name"] for pod in cluster.pods()] == ["a"]


def test_quota_is_measured(cluster: GpuCluster, operator: OperatorProcess) -> None:
    """The metrics tell limit and use of each quota."""
    quota = cluster.declare_quota(128)
    cluster.wait_enforced(128)
    cluster.create_pod("a", 32)
    series = f'cta_group_quota_used{{quota="{quota}"}}'
    wait_for(lambda: operator.metric(series) == 32, "the use to be measured")
    hard = f'cta_group_quota_hard{{quota="{quota}"}}'
    wait_for(lambda: operator.metric(hard) == 128, "the limit to be told")
