"""What a quota uses is counted by kube-controller-manager; while it does not, the CTAQuota says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chart_rendering import NAMESPACE
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from gpu_cluster import OURS, GpuCluster, condition
from operator_fixtures import cluster, kinds, operator_kubeconfig, second_namespace
from operator_process import OperatorProcess, running_operator

__all__ = ["cluster", "kinds", "operator_kubeconfig", "second_namespace"]


@contextmanager
def nobody_counts(control_plane: ControlPlane) -> Iterator[None]:
    """Stop kube-controller-manager for a while."""
    control_plane.stop_component("kube-controller-manager")
    try:
        yield
    finally:
        control_plane.start_component("kube-controller-manager")


@pytest.fixture
def operator(kinds: None, operator_kubeconfig: Path, tmp_path: Path) -> Iterator[OperatorProcess]:  # noqa: ARG001 - first
    """Run an operator."""
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path) as running:
        yield running


@pytest.fixture
def other(cluster: GpuCluster, second_namespace: str) -> Iterator[GpuCluster]:
    """Return a second team."""
    made = GpuCluster(cluster.api, second_namespace)
    yield made
    made.close()


def wait_condition(cluster: GpuCluster, quota: str, kind: str, told: tuple[str, str]) -> None:
    """Wait until a condition of a CTAQuota has this status and reason."""
    wait_for(lambda: condition(cluster.quota_status(quota), kind) == told, f"{kind} of {quota} to be {told}")


def test_a_quota_that_is_not_initialised_is_told(
    cluster: GpuCluster, second_namespace: str, control_plane: ControlPlane, operator: OperatorProcess
) -> None:
    """Without a first count every pod is refused; the quota says why, is left alone, and goes on by itself."""
    path = f"/api/v1/namespaces/{cluster.namespace}/resourcequotas/cta-group"
    with nobody_counts(control_plane):
        quota = cluster.declare_quota(256, cluster.namespace, second_namespace)
        wait_condition(cluster, quota, "Ready", ("False", "NotInitialised"))
        with pytest.raises(Exception, match="status unknown for quota: cta-group"):
            cluster.create_pod("early", 32)
        before = cluster.api.get(path)["metadata"]["resourceVersion"]
        rounds = operator.metric('cta_group_reconcile_seconds_count{kind="quota"}') or 0
        for number in range(3):
            cluster.api.patch(f"{OURS}/ctaquotas/{quota}", {"metadata": {"annotations": {"test": str(number)}}})
            wait_for(
                lambda number=number: (  # type: ignore[misc]
                    (operator.metric('cta_group_reconcile_seconds_count{kind="quota"}') or 0) > rounds + number
                ),
                "another round",
            )
        assert cluster.api.get(path)["metadata"]["resourceVersion"] == before
    wait_condition(cluster, quota, "Ready", ("True", "Enforced"))
    cluster.create_pod("late", 32)


def test_use_that_nobody_takes_back_is_told_and_stays_used(
    cluster: GpuCluster, other: GpuCluster, control_plane: ControlPlane, operator: OperatorProcess
) -> None:
    """Groups of a pod that is gone stay charged without a count: told, never lent, and free after the next count."""
    del operator
    quota = cluster.declare_quota(64, cohort=cluster.namespace)
    cluster.wait_enforced(64)
    borrower = other.declare_quota(0, cohort=cluster.namespace)
    other.wait_enforced(0)
    cluster.create_pod("first", 64)
    wait_for(lambda: cluster.quota_status(quota).get("used") == 64, "the pod to be counted")
    other.make_controller("ReplicaSet", "web", 64, replicas=1)
    wait_for(lambda: other.quota_status(borrower).get("pending") == 64, "the denial to be seen")
    with nobody_counts(control_plane):
        cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/first?gracePeriodSeconds=0")
        wait_condition(cluster, quota, "UsageStale", ("True", "ChargedToNobody"))
        assert (cluster.limit(), other.limit()) == (64, 0)
    wait_for(lambda: len(other.pods()) == 1, "the groups to be lent")
    wait_condition(cluster, quota, "UsageStale", ("False", "Counted"))
