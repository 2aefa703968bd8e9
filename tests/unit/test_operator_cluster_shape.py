"""What the operator knows and tells of pods that need thread-block clusters."""

from dataclasses import replace
from typing import Any

import pytest

from cta_group_core.ids import NodeName
from cta_group_core.nodes import Allocation
from cta_group_core.scheduling import PodTerms
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import ObjectRef
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.in_flight import Offers
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.workload_marks import WorkloadMarks
from operator_world import RESOURCE, SPACE, FakeClock, FakeKube, a_node, a_pod, a_reconciler, a_view

CLUSTERED = PodTerms(needs_clusters=True)


def a_world(*capabilities: str, terms: PodTerms = CLUSTERED, holds: int = 1) -> ClusterView:
    """Return a view of one node with such GPUs, on whose first ``holds`` a pod runs."""
    view = a_view()
    held = [Allocation(namespace=SPACE, pod="p", container="c", groups=32, memory_mib=1)]
    a_node(view, "n", *(128 for _ in capabilities), tenants=held)
    node = view.cta_nodes.get(NodeName("n"))
    assert node is not None
    gpus = tuple(
        gpu.model_copy(update={"compute_capability": one, "allocations": tuple(held) if index < holds else ()})
        for index, (gpu, one) in enumerate(zip(node.status.gpus, capabilities, strict=True))
    )
    view.cta_nodes.put(replace(node, status=node.status.model_copy(update={"gpus": gpus}), resource_version="2"))
    view.pods.put(a_pod("p", gates=(), node=NodeName("n"), phase="Running", terms=terms))
    return view


async def events_about(view: ClusterView, rounds: int = 2) -> list[str]:
    """Explain the pod so often; return the reasons of the events."""
    kube = FakeKube()
    explainer = a_reconciler(view, kube)
    (pod,) = view.pods
    for _ in range(rounds):
        await explainer.reconcile(pod.ref)
    status = kube.objects[f"/apis/ctagroup.dev/v1alpha1/namespaces/{SPACE}/ctaworkloads/pod-p/status"]["status"]
    assert ("ClustersAvailable" in str(status)) == ("thread-block" in status["message"])
    return [body["reason"] for path, body in kube.objects.items() if "/events/" in path]


@pytest.mark.parametrize(
    ("capabilities", "terms", "told"),
    [
        (("8.0",), CLUSTERED, ["NoThreadBlockClusters"]),
        (("8.0", "9.0"), CLUSTERED, ["NoThreadBlockClusters"]),
        (("9.0", "8.0"), CLUSTERED, []),
        (("unknown",), CLUSTERED, []),
        (("8.0",), PodTerms(), []),
    ],
)
async def test_a_pod_without_the_clusters_that_it_needs(
    capabilities: tuple[str, ...], terms: PodTerms, told: list[str]
) -> None:
    """One event for all rounds, and the sentence says it; the GPU that the pod holds decides."""
    assert await events_about(a_world(*capabilities, terms=terms)) == told


@pytest.mark.parametrize(
    ("capabilities", "holds", "told"),
    [
        (("9.0", "8.0"), 2, ["NoThreadBlockClusters"]),
        (("8.0", "9.0"), 2, ["NoThreadBlockClusters"]),
        (("9.0", "9.0"), 2, []),
        (("9.0", "8.0"), 0, []),
        (("8.0", "8.0"), 0, ["NoThreadBlockClusters"]),
    ],
)
async def test_every_gpu_of_a_pod_counts(capabilities: tuple[str, ...], holds: int, told: list[str]) -> None:
    """One that lacks clusters among several is told; before the node says which it holds, only what is sure."""
    assert await events_about(a_world(*capabilities, holds=holds)) == told


@pytest.mark.parametrize(
    ("capabilities", "expected"), [(("9.0", "8.0"), False), (("9.0", "unknown"), True), (("8.9",), False)]
)
def test_a_node_is_offered_with_what_its_gpus_have(capabilities: tuple[str, ...], expected: bool) -> None:  # noqa: FBT001
    """One GPU without clusters is enough: on a node the plugin chooses."""
    view = a_world(*capabilities)
    (offer,) = Offers(view, {}).all()
    assert offer.has_clusters is expected


async def nothing(_: ObjectRef) -> None:
    """Explain nothing."""


@pytest.mark.parametrize(
    ("before", "after", "terms", "looked_at"),
    [
        ({"capability": "8.0"}, {"capability": "9.0"}, CLUSTERED, True),
        ({"holds": 0}, {"holds": 1}, CLUSTERED, True),
        ({"holds": 1}, {"holds": 1}, CLUSTERED, False),
        ({"capability": "8.0"}, {"capability": "9.0"}, PodTerms(), False),
    ],
)
def test_who_needs_clusters_is_looked_at_when_its_gpu_is_told_otherwise(
    before: dict[str, Any], after: dict[str, Any], terms: PodTerms, *, looked_at: bool
) -> None:
    """Also a pod of its own, of which nothing else changes then: what it is told must not stay as it was."""
    states = [a_state(**told, terms=terms) for told in (before, after)]
    view, queue = a_view(), WorkQueue[ObjectRef]("workload", nothing, clock=FakeClock(), metrics=Metrics("test"))
    WorkloadMarks(view, Denials(view, RESOURCE), queue)
    (node,), (pod,), (cta_node,) = states[0].nodes, states[0].pods, states[0].cta_nodes
    view.nodes.put(node)
    view.pods.put(pod)
    view.cta_nodes.put(cta_node)
    queue.rest()
    queue.wake()
    (changed,) = states[1].cta_nodes
    view.cta_nodes.put(replace(changed, resource_version="3"))
    assert queue.depth == looked_at


def a_state(*, terms: PodTerms, capability: str = "8.0", holds: int = 1) -> ClusterView:
    """Return a view of one node with two such GPUs."""
    return a_world(capability, capability, terms=terms, holds=holds)
