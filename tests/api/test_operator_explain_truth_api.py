"""Sentences about workloads that a plain count of pods would not explain, by what real controllers say."""

import pytest

from cluster_harness.waiting import wait_for
from gpu_cluster import GpuCluster, held
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

pytestmark = pytest.mark.usefixtures("operator")
KEY = "requests.nvidia.com/cta-group"


def test_a_limit_that_people_made_beside_ours(cluster: GpuCluster) -> None:
    """The smaller one refuses, so it is named: the CTAQuota has room and is not in the way."""
    cluster.declare_quota(256)
    cluster.wait_enforced(256)
    path = f"/api/v1/namespaces/{cluster.namespace}/resourcequotas"
    cluster.api.create(path, {"metadata": {"name": "by-hand"}, "spec": {"hard": {KEY: "32"}}})
    wait_for(lambda: cluster.api.get(f"{path}/by-hand").get("status", {}).get("used"), "its count")
    cluster.deploy("web", 32, replicas=2)
    told = "1 of 2 pods cannot be created: needs 32, quota 32, used 32, short 32 (ResourceQuota by-hand)"
    cluster.wait_told("Deployment", "web", told)


def test_jobs_that_make_no_pods(cluster: GpuCluster) -> None:
    """One that waits for room beyond its deadline has failed, one is suspended: both say so when no pod is left."""
    cluster.add_node("full", [held(128)])
    cluster.make_controller("Job", "late", 32, activeDeadlineSeconds=1)
    cluster.wait_told("Job", "late", "the Job has failed (DeadlineExceeded: ")
    path = cluster.make_controller("Job", "later", 32, suspend=True)
    cluster.wait_told("Job", "later", "the Job is suspended (spec.suspend)")
    cluster.api.patch(path, {"spec": {"suspend": False}})
    cluster.wait_told("Job", "later", "the pod waits for room")


def test_a_stateful_set_waits_for_the_end_of_its_pod(cluster: GpuCluster) -> None:
    """Its next pod has the same name, so none is made while the one before is there."""
    cluster.add_node("one", [])
    path = cluster.make_controller("StatefulSet", "set", 32, serviceName="set")
    wait_for(cluster.pods, "the pod to be made")
    cluster.wait_bound("set-0")  # no kubelet is there to end it
    pod = f"/api/v1/namespaces/{cluster.namespace}/pods/set-0"
    cluster.api.delete(f"{pod}?gracePeriodSeconds=600")
    until = cluster.pod("set-0")["metadata"]["deletionTimestamp"]
    cluster.wait_told(
        "StatefulSet", "set", f"0 of 1 pods run, 32 groups each; being deleted: set-0 (grace until {until})"
    )
    cluster.api.delete(path)
