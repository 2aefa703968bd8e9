"""Gated pods on a real API server and scheduler: released to the node where their GPU fits best, or told why not."""

import pytest

from cluster_harness.waiting import wait_for
from gpu_cluster import GpuCluster, condition, held
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig
from operator_process import OperatorProcess

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

pytestmark = pytest.mark.usefixtures("operator")


def required_nodes(pod: dict[str, object]) -> list[str]:
    """Return the nodes that a pod's required affinity names, in order."""
    spec = pod["spec"]
    assert isinstance(spec, dict)
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [term["matchFields"][0]["values"][0] for term in required["nodeSelectorTerms"]]


def test_best_fit_among_nodes(cluster: GpuCluster) -> None:
    """A pod is bound to the node where it leaves the fewest groups on its GPU; others are named as alternatives."""
    roomy = cluster.add_node("roomy", [], [])
    tight = cluster.add_node("tight", [held(88)], [held(128)])
    cluster.wait_known(roomy, tight)
    cluster.create_pod("fits", 32)
    assert cluster.wait_bound("fits") == tight
    pod = cluster.pod("fits")
    assert required_nodes(pod) == [tight, roomy]
    assert pod["metadata"]["annotations"]["ctagroup.dev/placement-nodes"] == f"{tight},{roomy}"
    assert not pod["spec"].get("schedulingGates")


def test_no_room_is_told_and_ends(cluster: GpuCluster) -> None:
    """A pod that fits on no GPU, though the node's total would do, stays gated with asked, free and what fits."""
    node = cluster.add_node("halves", *[[held(64)]] * 8)
    cluster.deploy("large", 96)
    status = cluster.wait_told(
        "Deployment",
        "large",
        "asked for 96 groups",
        f"{node}: free per GPU: GPU 0-7: 64 of 128 each",
        "the largest request that fits now is 64",
    )
    assert condition(status, "Placed") == ("False", "NoRoom")
    (pod,) = cluster.pods()
    assert pod["spec"]["schedulingGates"] == [{"name": "ctagroup.dev/placement"}]
    name = pod["metadata"]["name"]
    wait_for(lambda: "NoRoomForGroups" in dict(cluster.events("Pod", name)), "an event on the pod")

    cluster.publish(node, [], *[[held(64)]] * 7)
    assert cluster.wait_bound(name) == node
    wait_for(
        lambda: condition(cluster.explanation("Deployment", "large"), "Placed") == ("True", "Placed"), "it to be placed"
    )


def test_promised_room_is_given_once(cluster: GpuCluster) -> None:
    """Pods that are bound but not reported by the plugin yet hold their room; the next is released when it is free."""
    node = cluster.add_node("one", [])
    for number in range(4):
        cluster.create_pod(f"pod-{number}", 32)
    for number in range(4):
        assert cluster.wait_bound(f"pod-{number}") == node
    cluster.create_pod("fifth", 32)
    cluster.wait_told("Pod", "fifth", "GPU 0: 0 of 128")
    tenants = [held(32, f"pod-{number}", cluster.namespace) for number in range(4)]
    cluster.publish(node, tenants)
    cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/pod-0?gracePeriodSeconds=0")
    cluster.wait_told("Pod", "fifth", "GPU 0: 0 of 128")
    cluster.publish(node, tenants[1:])
    assert cluster.wait_bound("fifth") == node


def test_terms_of_the_pod_hold(cluster: GpuCluster) -> None:
    """Taints, cordon and the pod's own node affinity are respected, and its affinity is only added to."""
    cluster.add_node("tainted", [held(96)], taints=[{"key": "team", "value": "b", "effect": "NoSchedule"}])
    cordoned = cluster.add_node("cordoned", [held(96)])
    cluster.api.patch(f"/api/v1/nodes/{cordoned}", {"spec": {"unschedulable": True}})
    zone_a = cluster.add_node("zone-a", [], labels={"zone": "a"})
    cluster.add_node("zone-b", [held(64)], labels={"zone": "b"})
    in_a = [{"key": "zone", "operator": "In", "values": ["a"]}]
    required = {"nodeSelectorTerms": [{"matchExpressions": in_a}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    cluster.create_pod("choosy", 32, affinity=affinity)
    assert cluster.wait_bound("choosy") == zone_a
    (term,) = cluster.pod("choosy")["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term["matchExpressions"] == in_a
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": [zone_a]}]


def test_node_without_a_plugin_is_not_chosen(cluster: GpuCluster) -> None:
    """A CTANode whose node does not advertise the groups any more is no place for a pod."""
    cluster.add_node("dead", [], advertised=0)
    cluster.create_pod("waits", 32)
    cluster.wait_told("Pod", "waits", "kubelet advertises 0 groups")


def test_whole_gpus(cluster: GpuCluster) -> None:
    """A request of two GPUs goes where two are entirely free."""
    cluster.add_node("shared", [], [held(8)])
    whole = cluster.add_node("whole", [], [], [held(8)])
    cluster.create_pod("two", 256)
    assert cluster.wait_bound("two") == whole


def test_other_gates_are_waited_for(cluster: GpuCluster) -> None:
    """While somebody else holds a pod back, no room is kept for it and its gate stays on."""
    node = cluster.add_node("one", [])
    gates = [{"name": "example.com/theirs"}, {"name": "ctagroup.dev/placement"}]
    cluster.create_pod("held-back", 128, schedulingGates=gates)
    cluster.create_pod("other", 128)
    assert cluster.wait_bound("other") == node
    assert cluster.pod("held-back")["spec"]["schedulingGates"] == gates


def test_node_is_labelled(cluster: GpuCluster) -> None:
    """Stable facts of the GPUs become labels of the node, and what is no fact any more is taken away."""
    node = cluster.add_node("facts", [], [], labels={"ctagroup.dev/gpu-product": "Old"})
    wanted = {
        "ctagroup.dev/gpu-product": "NVIDIA-H100-80GB-HBM3",
        "ctagroup.dev/groups-per-gpu": "128",
        "ctagroup.dev/simulated": "true",
    }
    wait_for(
        lambda: wanted.items() <= cluster.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"].items(), "the labels"
    )


def test_releases_are_counted(cluster: GpuCluster, operator: OperatorProcess) -> None:
    """Each release is counted, and pods whose gate is on are measured."""
    before = operator.metric("cta_group_placement_released_total")
    assert before is not None
    cluster.create_pod("waits", 96)
    wait_for(lambda: (operator.metric("cta_group_placement_waiting") or 0) >= 1, "a waiting pod")
    cluster.add_node("late", [])
    cluster.wait_bound("waits")
    wait_for(lambda: operator.metric("cta_group_placement_released_total") == before + 1, "the release to be counted")
