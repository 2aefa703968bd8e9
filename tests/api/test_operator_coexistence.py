"""Placement beside other controllers and beside tenants who may patch their pods: no promise is made on their word."""

import pytest

from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_PLACEMENT, GATE_PLACEMENT, LABEL_REQUESTS
from gpu_cluster import GpuCluster, held
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

pytestmark = pytest.mark.usefixtures("operator")
HOLD = "example.com/hold"
BOTH = [{"name": HOLD}, {"name": GATE_PLACEMENT}]


def path_of(cluster: GpuCluster, name: str) -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{cluster.namespace}/pods/{name}"


def gates_of(cluster: GpuCluster, name: str) -> list[str]:
    """Return the scheduling gates that a pod has."""
    return [gate["name"] for gate in cluster.pod(name)["spec"].get("schedulingGates", ())]


def take_off(cluster: GpuCluster, name: str, gate: str) -> None:
    """Take one gate off a pod, as whoever put it there does."""
    left = [{"name": one} for one in gates_of(cluster, name) if one != gate]
    cluster.api.patch(path_of(cluster, name), {"spec": {"schedulingGates": left}})


def test_a_pod_that_others_hold_back_keeps_nothing_and_is_planned_afresh(cluster: GpuCluster) -> None:
    """While a foreign gate is on, it is named and another pod gets the room; when it goes, the plan is a new one."""
    node = cluster.add_node("one", [held(32)])
    cluster.create_pod("first", 96, schedulingGates=BOTH)
    cluster.wait_told("Pod", "first", HOLD)
    cluster.create_pod("second", 96)
    assert cluster.wait_bound("second") == node
    cluster.publish(node, [held(32), held(96, "second", cluster.namespace)])
    take_off(cluster, "first", HOLD)
    cluster.wait_told("Pod", "first", "asked for 96 groups", "GPU 0: 0 of 128")
    assert gates_of(cluster, "first") == [GATE_PLACEMENT]
    cluster.api.delete(f"{path_of(cluster, 'second')}?gracePeriodSeconds=0")
    cluster.publish(node, [held(32)])
    assert cluster.wait_bound("first") == node


def test_our_gate_taken_off_by_hand_is_tolerated_and_told(cluster: GpuCluster) -> None:
    """The pod goes where the scheduler likes, best effort; the event and the explanation say that nobody looked."""
    node = cluster.add_node("one", [held(96)])
    cluster.create_pod("first", 96, schedulingGates=BOTH)
    cluster.wait_told("Pod", "first", HOLD)
    take_off(cluster, "first", GATE_PLACEMENT)
    wait_for(
        lambda: "somebody other than the operator" in dict(cluster.events("Pod", "first")).get("GateRemoved", ""),
        "the event about the gate",
    )
    cluster.wait_told("Pod", "first", "taken off by somebody other than the operator")
    take_off(cluster, "first", HOLD)
    assert cluster.wait_bound("first") == node  # the scheduler counts 128; the node's plugin would have the last word
    cluster.create_pod("next", 8)
    cluster.wait_told("Pod", "next", "promised to 1 containers")


def test_a_forged_plan_is_no_promise(cluster: GpuCluster) -> None:
    """A pod that comes with our label and annotation and without the gate keeps no room on the node that it names."""
    node = cluster.add_node("one", [])
    nowhere = {"test": cluster.namespace, "is": "nowhere"}
    spec = cluster.pod_spec(128, nodeSelector=nowhere, schedulingGates=[])
    forged = {"name": "forged", "labels": {LABEL_REQUESTS: "true"}, "annotations": {ANNOTATION_PLACEMENT: node}}
    cluster.api.create(f"/api/v1/namespaces/{cluster.namespace}/pods", {"metadata": forged, "spec": spec})
    cluster.wait_told("Pod", "forged", "0/")
    cluster.create_pod("honest", 128)
    assert cluster.wait_bound("honest") == node


def test_affinity_that_is_patched_while_gated_counts(cluster: GpuCluster) -> None:
    """A waiting pod whose node affinity was changed is planned by what it says now."""
    before = cluster.add_node("before", [held(64)], labels={"side": "a"})
    after = cluster.add_node("after", [held(64)], labels={"side": "b"})
    cluster.create_pod("large", 96)
    cluster.wait_told("Pod", "large", "GPU 0: 64 of 128")
    side_b = {"matchExpressions": [{"key": "side", "operator": "In", "values": ["b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [side_b]}}
    cluster.api.patch(path_of(cluster, "large"), {"spec": {"affinity": {"nodeAffinity": required}}})
    cluster.wait_told("Pod", "large", f"out of the question: {before}: required node affinity")
    cluster.publish(before, [])
    cluster.publish(after, [])
    assert cluster.wait_bound("large") == after


def test_many_pods_that_never_fit_leave_others_alone(cluster: GpuCluster) -> None:
    """Two hundred gated pods that each need a look of their own and fit nowhere: another tenant's is bound."""
    node = cluster.add_node("one", [])
    for number in range(200):
        selector = {"test": cluster.namespace, "is": str(number)}
        cluster.create_pod(f"never-{number}", 32, nodeSelector=selector)
    cluster.create_pod("other", 128)
    assert cluster.wait_bound("other") == node
    assert gates_of(cluster, "never-0") == gates_of(cluster, "never-199") == [GATE_PLACEMENT]
