"""Pods that a kubelet refused, on a real API server with real controllers; the test speaks for the kubelet."""

from typing import Any

import pytest

from cluster_harness.waiting import wait_for
from gpu_cluster import GpuCluster, condition
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig
from operator_process import OperatorProcess

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

NO_ROOM = (
    "Pod was rejected: Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: "
    "code = ResourceExhausted desc = asked for 32 groups, but no GPU has room, which is unexpected"
)
REFUSED = 'cta_group_refused_pods_total{cause="room"}'


def fail(cluster: GpuCluster, name: str, reason: str, message: str) -> None:
    """Say of a pod what a kubelet says that does not take it."""
    status = {"phase": "Failed", "reason": reason, "message": message}
    cluster.api.patch(f"/api/v1/namespaces/{cluster.namespace}/pods/{name}/status", {"status": status})


def other_than(cluster: GpuCluster, *known: str) -> str:
    """Wait for a pod that is none of those, and return its name."""

    def found() -> str | None:
        names = [pod["metadata"]["name"] for pod in cluster.pods()]
        return next((name for name in names if name not in known), None)

    return wait_for(found, "the next pod")


def names(cluster: GpuCluster) -> set[str]:
    """Return the names of the pods that are there."""
    return {pod["metadata"]["name"] for pod in cluster.pods()}


def test_refused_pods_do_not_pile_up_and_the_next_one_waits(cluster: GpuCluster, operator: OperatorProcess) -> None:
    """The Deployment is told with kubelet's words, its next pod waits longer each time, and older ones go."""
    before = operator.metric(REFUSED)
    assert before is not None
    cluster.add_node("gpu", [])
    cluster.deploy("web", 32)
    first = other_than(cluster)
    cluster.wait_bound(first)
    fail(cluster, first, "UnexpectedAdmissionError", NO_ROOM)
    second = other_than(cluster, first)
    cluster.wait_bound(second)
    fail(cluster, second, "UnexpectedAdmissionError", NO_ROOM)
    third = other_than(cluster, first, second)
    status = cluster.wait_told("Deployment", "web", NO_ROOM, "2 times in a row", "tried again 20 s after that")
    assert condition(status, "Placed")[0] == "False", f"{third} waits"
    wait_for(lambda: names(cluster) == {second, third}, "the first one to be taken away")
    words = f"refused pod {first}, which asks for 32 groups"
    wait_for(lambda: any(words in told for _, told in cluster.events("Deployment", "web")), words)
    wait_for(lambda: operator.metric(REFUSED) == before + 2, "both to be counted")


@pytest.mark.usefixtures("operator")
def test_pods_that_failed_otherwise_stay(cluster: GpuCluster) -> None:
    """A pod that was evicted stays for people, as does one of its own that was refused; the others of a kind go."""
    cluster.add_node("gpu", [], [], [])
    for name in ("web", "other"):
        cluster.deploy(name, 32)

    def of(app: str) -> list[dict[str, Any]]:
        return [pod for pod in cluster.pods() if pod["metadata"]["labels"].get("app") == app]

    wait_for(lambda: of("web") and of("other"), "both pods")
    evicted = of("web")[0]["metadata"]["name"]
    refused = of("other")[0]["metadata"]["name"]
    cluster.create_pod("alone", 32)
    for name in (evicted, refused, "alone"):
        cluster.wait_bound(name)
    fail(cluster, evicted, "Evicted", "The node was low on resource: memory.")
    fail(cluster, "alone", "UnexpectedAdmissionError", NO_ROOM)
    fail(cluster, refused, "UnexpectedAdmissionError", NO_ROOM)
    wait_for(lambda: len(of("other")) == 2, "the pod that follows it")
    following = next(pod["metadata"]["name"] for pod in of("other") if pod["metadata"]["name"] != refused)
    cluster.wait_bound(following)
    fail(cluster, following, "UnexpectedAdmissionError", NO_ROOM)
    wait_for(lambda: refused not in names(cluster), "the older refused pod to go")
    assert {evicted, "alone"} <= names(cluster)
    wait_for(lambda: "RefusedByNode" in dict(cluster.events("Pod", "alone")), "the bare pod to be told")
