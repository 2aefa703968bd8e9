"""Pods that were sent where only the scheduler knows that they cannot run: they run elsewhere, or are told why not."""

from collections.abc import Iterator
from typing import Any

import pytest

from cluster_harness.waiting import wait_for
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from gpu_cluster import GpuCluster, held
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig
from operator_process import OperatorProcess

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

# It lists other pods once a day, so that it does not know what they take of a node.
OPERATOR_FLAGS = ("--replan-after-seconds=2", "--scale-up-after-seconds=1", "--slipped-pods-seconds=86400")

pytestmark = pytest.mark.usefixtures("operator")
ZONE = "topology.kubernetes.io/zone"


def three_tight_and_one_roomy(cluster: GpuCluster) -> tuple[list[str], str]:
    """Make three nodes that best fit prefers, as many as a pod is released to, and one that it would take last."""
    tight = [cluster.add_node(f"tight-{letter}", [held(64)], labels={ZONE: "a"}) for letter in "abc"]
    return tight, cluster.add_node("roomy", [], labels={ZONE: "b"})


def occupy(cluster: GpuCluster, node: str, cpu: str = "0", **labels: str) -> str:
    """Bind a pod that asks for no groups, so that the operator does not know it; return its path."""
    container = {"name": "main", "image": "localhost/none:1", "resources": {"requests": {"cpu": cpu}}}
    body = {
        "metadata": {"name": f"occupant-{node}", "labels": labels},
        "spec": {"nodeName": node, "containers": [container]},
    }
    path = f"/api/v1/namespaces/{cluster.namespace}/pods"
    cluster.api.create(path, body)
    return f"{path}/occupant-{node}"


def asking(cpu: str) -> list[dict[str, Any]]:
    """Return the containers of a pod that asks for 32 groups and some cpu."""
    resources = {"limits": {DEFAULT_RESOURCE_NAME: 32}, "requests": {"cpu": cpu}}
    return [{"name": "main", "image": "localhost/none:1", "resources": resources}]


def wait_all_bound(cluster: GpuCluster, app: str, node: str) -> None:
    """Wait until the one living pod of a Deployment is bound to a node."""

    def nodes() -> list[str]:
        pods = [pod for pod in cluster.pods() if pod["metadata"]["labels"].get("app") == app]
        return [pod["spec"].get("nodeName", "") for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    wait_for(lambda: nodes() == [node], f"the pod of {app} to be bound to {node}")


def test_a_volume_in_another_zone(cluster: GpuCluster) -> None:
    """A pod whose volume lies where the planner did not send it is made again and runs at its volume."""
    _, roomy = three_tight_and_one_roomy(cluster)
    in_b = {"key": ZONE, "operator": "In", "values": ["b"]}
    size = {"storage": "1Gi"}
    volume = f"volume-{cluster.namespace}"
    cluster.api.create(
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": volume},
            "spec": {
                "capacity": size,
                "accessModes": ["ReadWriteOnce"],
                "local": {"path": "/data"},
                "claimRef": {"namespace": cluster.namespace, "name": "data"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [in_b]}]}},
            },
        },
    )
    try:
        claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": volume}
        cluster.api.create(
            f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims",
            {"metadata": {"name": "data"}, "spec": {**claim, "resources": {"requests": size}}},
        )
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        cluster.deploy("server", 32, volumes=volumes)
        wait_all_bound(cluster, "server", roomy)
    finally:
        cluster.api.delete(f"/api/v1/persistentvolumes/{volume}")
    wait_for(
        lambda: "planned for other nodes" in dict(cluster.events("Deployment", "server")).get("Replanned", ""),
        "the event on the Deployment",
    )


def test_a_neighbour_that_must_not_be_near(cluster: GpuCluster) -> None:
    """A pod whose anti-affinity excludes the nodes that were chosen runs on another."""
    tight, roomy = three_tight_and_one_roomy(cluster)
    for node in tight:
        occupy(cluster, node, app="rival")
    near = {"labelSelector": {"matchLabels": {"app": "rival"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    cluster.deploy("server", 32, affinity=affinity)
    wait_all_bound(cluster, "server", roomy)


def test_cpu_that_others_took(cluster: GpuCluster, operator: OperatorProcess) -> None:
    """A pod whose cpu was taken by pods that ask for no groups runs on another node; it is counted."""
    before = operator.metric("cta_group_placement_replanned_total")
    assert before is not None
    tight, roomy = three_tight_and_one_roomy(cluster)
    for node in tight:
        occupy(cluster, node, cpu="63")
    cluster.deploy("server", 32, containers=asking("2"))
    wait_all_bound(cluster, "server", roomy)
    wait_for(lambda: (operator.metric("cta_group_placement_replanned_total") or 0) > before, "it to be counted")


def test_where_no_other_node_is_left_it_is_told(cluster: GpuCluster) -> None:
    """A pod that was tried on the only node waits gated, and the reason has the scheduler's words."""
    only = cluster.add_node("only", [])
    occupant = occupy(cluster, only, cpu="63")
    cluster.deploy("server", 32, containers=asking("2"))
    cluster.wait_told("Deployment", "server", f"{only}: tried, and the scheduler said", "Insufficient cpu")
    cluster.api.delete(f"{occupant}?gracePeriodSeconds=0")
    later = cluster.add_node("later", [])
    wait_all_bound(cluster, "server", later)


def test_a_pod_that_nobody_makes_again_is_told_and_stays(cluster: GpuCluster) -> None:
    """A pod of its own is not deleted: the event and the explanation say why it waits, and it runs when it can."""
    node = cluster.add_node("only", [])
    occupant = occupy(cluster, node, cpu="63")
    uid = cluster.create_pod("alone", 32, containers=asking("2"))["metadata"]["uid"]
    cluster.wait_told("Pod", "alone", f"released to {node}", "Insufficient cpu", "no controller makes it again")
    wait_for(lambda: "CannotBeScheduled" in dict(cluster.events("Pod", "alone")), "the event on the pod")
    cluster.api.delete(f"{occupant}?gracePeriodSeconds=0")
    assert wait_for(lambda: cluster.node_of("alone"), "the pod to be bound") == node
    assert cluster.pod("alone")["metadata"]["uid"] == uid


def test_what_people_create_again_is_planned_elsewhere(cluster: GpuCluster) -> None:
    """Who is told to create a pod of its own again under its name finds it on another node then."""
    tight = cluster.add_node("tight", [held(64)])
    occupy(cluster, tight, cpu="63")
    cluster.wait_known(tight)
    cluster.create_pod("alone", 32, containers=asking("2"))
    cluster.wait_told("Pod", "alone", f"released to {tight}", "create it again under its name")
    roomy = cluster.add_node("roomy", [])  # best fit would take the tight one again
    cluster.wait_known(roomy)
    cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/alone?gracePeriodSeconds=0")
    cluster.create_pod("alone", 32, containers=asking("2"))
    assert cluster.wait_bound("alone") == roomy


def test_what_fits_nowhere_is_shown_to_an_autoscaler(cluster: GpuCluster) -> None:
    """A pod without room is released without a node, unschedulable as autoscalers look for it, and takes a new node."""
    node = cluster.add_node("full", [])
    cluster.create_pod("holder", 128)
    assert cluster.wait_bound("holder") == node
    cluster.publish(node, [held(128, "holder", cluster.namespace)])
    cluster.create_pod("large", 96)

    def shown() -> bool:
        return is_unschedulable(cluster, "large") and not cluster.pod("large")["spec"].get("schedulingGates")

    wait_for(shown, "the pod to be unschedulable")
    assert "affinity" not in cluster.pod("large")["spec"]
    wait_for(lambda: "ShownToAutoscaler" in dict(cluster.events("Pod", "large")), "the event")
    new = cluster.add_node("new", [])
    assert cluster.wait_bound("large") == new


def test_what_the_scheduler_would_bind_to_pieces_is_not_shown(cluster: GpuCluster) -> None:
    """While groups are left in pieces that make up the request, the pod stays gated and is told why."""
    node = cluster.add_node("pieces", [held(64)], [held(64)])
    cluster.create_pod("large", 96)
    cluster.wait_told("Pod", "large", "not shown to the autoscaler", f"would bind it to {node}")
    assert cluster.pod("large")["spec"]["schedulingGates"]
    cluster.publish(node, [held(64)], [])
    assert cluster.wait_bound("large") == node


@pytest.fixture
def important(cluster: GpuCluster) -> Iterator[tuple[str, str]]:
    """Make two priority classes, of which the second evicts nobody."""
    path, names = (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        (f"high-{cluster.namespace}", f"meek-{cluster.namespace}"),
    )
    for name, policy in zip(names, ("PreemptLowerPriority", "Never"), strict=True):
        cluster.api.create(path, {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": policy})
    yield names
    for name in names:
        cluster.api.discard(f"{path}/{name}")


def test_nobody_is_evicted_for_what_an_autoscaler_is_to_see(cluster: GpuCluster, important: tuple[str, str]) -> None:
    """The scheduler would evict for sums, not for GPUs: who may evict stays gated and is told, who may not is shown."""
    high, meek = important
    node = cluster.add_node("full", [])
    cluster.create_pod("low", 128)
    assert cluster.wait_bound("low") == node
    cluster.wait_told("Pod", "low", "1 starting")  # so the operator knows where it is
    cluster.publish(node, [held(128, "low", cluster.namespace)])
    cluster.create_pod("high", 96, priorityClassName=high)
    cluster.create_pod("meek", 96, priorityClassName=meek)
    cluster.wait_told("Pod", "high", "not shown to the autoscaler", f"evict pods of a lower priority on {node} for it")
    wait_for(lambda: "schedulingGates" not in cluster.pod("meek")["spec"], "the other to be shown")
    assert cluster.pod("high")["spec"]["schedulingGates"]
    wait_for(lambda: is_unschedulable(cluster, "meek"), "the scheduler to have looked at it")
    assert "deletionTimestamp" not in cluster.pod("low")["metadata"]


def is_unschedulable(cluster: GpuCluster, name: str) -> bool:
    """Tell whether the scheduler says that it finds no node for a pod."""
    told = [
        one.get("reason") for one in cluster.pod(name)["status"].get("conditions", ()) if one["type"] == "PodScheduled"
    ]
    return told == ["Unschedulable"]
