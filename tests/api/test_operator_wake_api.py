"""Whatever makes pods is woken when the quota that refused them has room again, long before its own back-off ends."""

from typing import Any

import pytest

from cluster_harness.waiting import wait_for
from gpu_cluster import OURS, PATIENCE_SECONDS, GpuCluster
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig
from operator_process import OperatorProcess

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

_SPECS: dict[str, dict[str, Any]] = {
    "ReplicaSet": {"replicas": 1},
    "StatefulSet": {"replicas": 1, "serviceName": "web"},
    "DaemonSet": {},
    "Job": {},
}
_REFUSALS = 11
"""After so many a controller that begins with 5 ms waits for ten seconds; a Job begins with a second."""


def refusals(cluster: GpuCluster) -> int:
    """Return how often a controller of the namespace was refused a pod."""
    items = cluster.api.items(f"/api/v1/namespaces/{cluster.namespace}/events?fieldSelector=reason=FailedCreate")
    return sum(one.get("count") or 1 for one in items)


@pytest.mark.parametrize("kind", _SPECS)
@pytest.mark.parametrize("how", ["raised", "freed elsewhere"])
def test_a_denied_controller_is_woken(cluster: GpuCluster, operator: OperatorProcess, kind: str, how: str) -> None:
    """The operator sees to the next pod after the quota was raised, or another pod gave its groups back.

    The poke is counted only where the controller had not come by itself.
    """
    cluster.add_node("one", [])
    quota = cluster.declare_quota(64)
    cluster.wait_enforced(64)
    cluster.create_pod("other", 64)
    cluster.make_controller(kind, "web", 64, **_SPECS[kind])
    wait_for(lambda: refusals(cluster) >= (4 if kind == "Job" else _REFUSALS), "the back-off to grow", PATIENCE_SECONDS)
    before = operator.metric("cta_group_pokes_total")
    assert before is not None
    if how == "raised":
        cluster.api.patch(f"{OURS}/ctaquotas/{quota}", {"spec": {"groups": 128}})
    else:
        cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/other?gracePeriodSeconds=0")
    wait_for(
        lambda: [pod for pod in cluster.pods() if pod["metadata"]["name"] != "other"],
        f"the pod of {kind}",
        PATIENCE_SECONDS,
    )
    wait_for(lambda: (operator.metric("cta_group_pokes_total") or 0) >= before + 1, "the poke to be counted")
