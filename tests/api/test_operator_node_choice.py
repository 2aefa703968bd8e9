"""What decides between nodes, and room that is kept, on a real API server and scheduler, where minutes pass at once."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cluster_harness.waiting import wait_for
from cta_group_core.names import DEFAULT_RESOURCE_NAME, LABEL_GPU_PRODUCT, LABEL_REQUESTS
from cta_group_core.turn import KEEP_AFTER_SECONDS, KEEP_SECONDS
from cta_group_operator.reconcile.demand_reader import FRESH_SECONDS
from gpu_cluster import OURS, GpuCluster, Json, held
from hurried_operator import HurriedOperator, hurried_operator
from operator_fixtures import cluster, kinds, operator_kubeconfig

__all__ = ["cluster", "kinds", "operator_kubeconfig"]

NVIDIA_PRODUCT = "nvidia.com/gpu.product"


@pytest.fixture(scope="module")
def hurried(
    kinds: None,  # noqa: ARG001 - must be served first
    operator_kubeconfig: Path,
) -> Iterator[HurriedOperator]:
    """Run an operator for the tests of this module and return it."""
    with hurried_operator(operator_kubeconfig) as running:
        yield running


def ask(
    cluster: GpuCluster,
    name: str,
    groups: int,
    *,
    says: Mapping[str, str] | None = None,
    cpu: str = "0",
    **spec: object,
) -> None:
    """Make a gated pod with annotations of ours, by the last part of their name, that asks for some cpu too."""
    annotations = {f"ctagroup.dev/{key}": value for key, value in (says or {}).items()}
    metadata = {"name": name, "labels": {LABEL_REQUESTS: "true"}, "annotations": annotations}
    resources = {"limits": {DEFAULT_RESOURCE_NAME: groups}, "requests": {"cpu": cpu}}
    container = {"name": "main", "image": "localhost/none:1", "resources": resources}
    body = {"metadata": metadata, "spec": cluster.pod_spec(groups, containers=[container], **spec)}
    cluster.api.create(f"/api/v1/namespaces/{cluster.namespace}/pods", body)


def only(cluster: GpuCluster, key: str, value: str) -> Json:
    """Return the selector of the nodes of this test with a label."""
    return {"test": cluster.namespace, key: value}


def bound(cluster: GpuCluster, hurried: HurriedOperator, name: str) -> str:
    """Return where a pod was bound, when the operator knows it too."""
    node = cluster.wait_bound(name)
    hurried.wait_bound(cluster.namespace, name)
    return node


def chosen(cluster: GpuCluster, hurried: HurriedOperator, name: str) -> str:
    """Return where a pod was bound, and take it away again; the operator has heard of that then."""
    node = cluster.wait_bound(name)
    cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/{name}?gracePeriodSeconds=0")
    hurried.wait_gone(cluster.namespace, name)
    return node


def a_large_pod_that_waits(cluster: GpuCluster, hurried: HurriedOperator) -> str:
    """Make a node with 64 free, a pod of 96 that has waited so long that room is kept, and one of 64 behind it."""
    node = cluster.add_node("one", [held(64)])
    cluster.wait_known(node)
    cluster.create_pod("large", 96)
    cluster.wait_told("Pod", "large", "asked for 96 groups")
    hurried.leap(KEEP_AFTER_SECONDS)
    cluster.create_pod("small", 64)
    cluster.wait_told("Pod", "small", f"GPU 0 with 64 free is kept for {cluster.namespace}/large")
    return node


def test_room_is_kept_until_it_is_enough(cluster: GpuCluster, hurried: HurriedOperator) -> None:
    """Who came later does not take the room that one waits for, and that one gets it when there is enough."""
    node = a_large_pod_that_waits(cluster, hurried)
    cluster.publish(node, [held(32)])
    assert cluster.wait_bound("large") == node
    assert cluster.pod("small")["spec"]["schedulingGates"]


def test_kept_room_is_given_back(cluster: GpuCluster, hurried: HurriedOperator) -> None:
    """When the turn of the one GPU is over it serves who is behind."""
    node = a_large_pod_that_waits(cluster, hurried)
    hurried.leap(KEEP_SECONDS)
    cluster.create_pod("tiny", 8)
    assert cluster.wait_bound("small") == node
    assert cluster.pod("large")["spec"]["schedulingGates"]


def test_a_scarce_model_is_spared(cluster: GpuCluster, hurried: HurriedOperator) -> None:
    """A pod that takes any GPU leaves those free that others insist on, though it would fit better there."""
    rare = cluster.add_node("a-rare", [], [held(64)], labels={NVIDIA_PRODUCT: "rare"})
    usual = cluster.add_node("b-usual", [])
    cluster.wait_known(rare, usual)
    ask(cluster, "before", 32)
    assert chosen(cluster, hurried, "before") == rare
    ask(cluster, "insists", 128, nodeSelector=only(cluster, NVIDIA_PRODUCT, "rare"))
    assert bound(cluster, hurried, "insists") == rare
    hurried.leap(FRESH_SECONDS)
    ask(cluster, "after", 32)
    assert cluster.wait_bound("after") == usual


def test_nothing_is_stranded(cluster: GpuCluster, hurried: HurriedOperator) -> None:
    """A pod that needs cpu goes where cpu is left, though its groups fit better where the rest could not be used."""
    poor, rich = cluster.add_node("a-poor", [held(64)]), cluster.add_node("b-rich", [])
    store = cluster.add_node("c-store", [], [])
    cluster.wait_known(poor, rich, store)
    # What pods ask for on average decides: those that earlier tests left count little beside one that fits nowhere.
    ask(cluster, "average", 1_000_000, cpu="150000")
    cluster.wait_told("Pod", "average", "asked for 1000000 groups")
    hurried.leap(FRESH_SECONDS)
    ask(cluster, "before", 8, cpu="20")
    assert chosen(cluster, hurried, "before") == poor
    for number in range(2):
        ask(cluster, f"holder-{number}", 128, nodeSelector=only(cluster, "kubernetes.io/hostname", store))
    ask(cluster, "eater", 8, cpu="40", nodeSelector=only(cluster, "kubernetes.io/hostname", poor))
    for name in ("holder-0", "holder-1", "eater"):
        bound(cluster, hurried, name)
    hurried.leap(FRESH_SECONDS)
    ask(cluster, "after", 8, cpu="20")
    assert cluster.wait_bound("after") == rich


def test_who_needs_bandwidth_is_kept_from_others(cluster: GpuCluster, hurried: HurriedOperator) -> None:
    """Of two GPUs where it fits as well, a latency-sensitive pod gets the one without a bandwidth-bound tenant."""
    nodes = {one: cluster.add_node(f"{one}-node", [held(64, one, cluster.namespace)]) for one in ("loud", "quiet")}
    cluster.wait_known(*nodes.values())
    ask(cluster, "loud", 64, says={"access-pattern": "bandwidth-bound"}, nodeName=nodes["loud"], schedulingGates=[])
    ask(cluster, "quiet", 64, nodeName=nodes["quiet"], schedulingGates=[])
    hurried.leap(FRESH_SECONDS)
    ask(cluster, "any", 32)
    assert chosen(cluster, hurried, "any") == nodes["loud"]
    ask(cluster, "sensitive", 32, says={"access-pattern": "latency-sensitive"})
    assert cluster.wait_bound("sensitive") == nodes["quiet"]


def test_who_needs_clusters_gets_a_gpu_that_has_them(cluster: GpuCluster, hurried: HurriedOperator) -> None:
    """A pod with a cluster shape leaves out the node whose GPUs have no clusters, while another has room."""
    old, new = cluster.add_node("a-old", []), cluster.add_node("b-new", [])
    gpus = cluster.api.get(f"{OURS}/ctanodes/{old}")["status"]["gpus"]
    ampere = [{**gpu, "product": "A100", "computeCapability": "8.0"} for gpu in gpus]
    cluster.api.patch(f"{OURS}/ctanodes/{old}/status", {"status": {"gpus": ampere}})
    cluster.wait_known(new)

    def is_old() -> bool:
        labels = cluster.api.get(f"/api/v1/nodes/{old}")["metadata"]["labels"]
        return bool(labels.get(LABEL_GPU_PRODUCT) == "A100")

    wait_for(is_old, "the operator to know the older GPU")
    ask(cluster, "any", 32)
    assert chosen(cluster, hurried, "any") == old
    ask(cluster, "clustered", 32, says={"shape": "2,1,1"})
    assert cluster.wait_bound("clustered") == new
