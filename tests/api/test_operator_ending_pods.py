"""Groups of pods that are being deleted, on a fake node without a kubelet: when they come back, and when they do not.

No kubelet runs, so a deleted pod stays for ever, as on a node that is lost; the test speaks for the kubelet at the end.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster_harness.waiting import wait_for
from gpu_cluster import OURS, GpuCluster, condition, held
from node_life import heard_of, lose
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

pytestmark = pytest.mark.usefixtures("operator")

_OTHERS = 96


def living(cluster: GpuCluster) -> list[dict[str, Any]]:
    """Return the pods that are not being deleted."""
    return [pod for pod in cluster.pods() if "deletionTimestamp" not in pod["metadata"]]


def two_full_nodes(cluster: GpuCluster) -> dict[str, str]:
    """Fill two nodes of one GPU by others and a Deployment of two pods, one a node; return the nodes by pod."""
    nodes = [cluster.add_node(name, [held(_OTHERS)]) for name in ("first", "second")]
    # Whoever ignores every taint could be bound to a lost node.
    with heard_of(cluster.api, nodes[0]), heard_of(cluster.api, nodes[1]):
        cluster.deploy("web", 32, replicas=2, tolerations=[])
        wait_for(lambda: len([pod for pod in cluster.pods() if "nodeName" in pod["spec"]]) == 2, "both")
    where = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in cluster.pods()}
    assert sorted(where.values()) == sorted(nodes)
    for name, node in where.items():
        cluster.publish(node, [held(_OTHERS), held(32, name, cluster.namespace)])
    return where


def test_what_comes_back_is_told_with_its_pod(cluster: GpuCluster) -> None:
    """A pod waits for one that is being deleted: explain names that one and the time; then it runs."""
    first, _ = sorted(two_full_nodes(cluster).items())
    name, node = first
    with heard_of(cluster.api, node):
        cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/{name}?gracePeriodSeconds=600")
        until = cluster.pod(name)["metadata"]["deletionTimestamp"]
        status = cluster.wait_told("Deployment", "web", f"groups come back: 32 when pod {name} has ended, by {until}")
        assert condition(status, "Placed") == ("False", "NoRoom")
        cluster.publish(node, [held(_OTHERS)])
        wait_for(lambda: all("nodeName" in pod["spec"] for pod in living(cluster)), "the next pod")
    assert sorted(pod["spec"]["nodeName"] for pod in living(cluster)) == sorted(cluster.nodes)


def test_a_lost_node_gives_back_the_quota_and_no_groups(cluster: GpuCluster) -> None:
    """A pod's grace is over, but its node is unreachable: its successor is let in, and waits for that node.

    The quota tells meanwhile what it is not charged for.
    """
    quota = cluster.declare_quota(64)
    cluster.wait_enforced(64)
    (name, node), _ = sorted(two_full_nodes(cluster).items())
    lose(cluster.api, node)
    gone = cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/{name}?gracePeriodSeconds=1")
    # kube-controller-manager charges it for its grace once more, and counts when a limit changes.
    charged_until = datetime.fromisoformat(gone["metadata"]["deletionTimestamp"]) + timedelta(seconds=1)
    wait_for(lambda: datetime.now(UTC) > charged_until, "Kubernetes to charge it no longer")
    cluster.api.patch(f"{OURS}/ctaquotas/{quota}", {"spec": {"groups": 72}})
    cluster.wait_told("Deployment", "web", f"{node}: unreachable, 128 groups held there")
    waiting = [pod for pod in living(cluster) if "nodeName" not in pod["spec"]]
    assert [pod["spec"]["schedulingGates"] for pod in waiting] == [[{"name": "ctagroup.dev/placement"}]]
    status = wait_uncharged(cluster, quota, 32)
    assert (status["groups"], status["used"]) == (72, 64)
    assert condition(status, "HeldUncharged") == ("True", "HeldByGonePods")
    with heard_of(cluster.api, node):
        cluster.publish(node, [held(_OTHERS)])
        cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/{name}?gracePeriodSeconds=0")
        wait_for(lambda: all("nodeName" in pod["spec"] for pod in living(cluster)), "the next pod")
    assert sorted(pod["spec"]["nodeName"] for pod in living(cluster)) == sorted(cluster.nodes)
    assert wait_uncharged(cluster, quota, 0)["used"] == 64


def wait_uncharged(cluster: GpuCluster, quota: str, groups: int) -> dict[str, Any]:
    """Wait until a quota of two living pods tells so much held beyond what is used, and return its status."""

    def told() -> dict[str, Any] | None:
        status = cluster.quota_status(quota)
        return status if (status.get("uncharged"), status.get("used")) == (groups, 64) else None

    return wait_for(told, f"{groups} uncharged groups", seen=lambda: cluster.quota_status(quota))
