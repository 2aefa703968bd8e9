"""Pods that came past the webhook on a real API server: found by the list or by a plugin's word, counted, explained."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chart_rendering import NAMESPACE
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_WITHOUT_WEBHOOK, LABEL_REQUESTS
from gpu_cluster import OURS, GpuCluster, condition, held
from operator_fixtures import cluster, kinds, operator_kubeconfig
from operator_process import OperatorProcess, running_operator

__all__ = ["cluster", "kinds", "operator_kubeconfig"]

COUNT = "cta_group_pods_without_webhook"


@pytest.fixture
def looking(
    kinds: None,  # noqa: ARG001 - must be served first
    operator_kubeconfig: Path,
    tmp_path: Path,
) -> Iterator[OperatorProcess]:
    """Run an operator that lists pods without the label every second."""
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path, "--slipped-pods-seconds=1") as running:
        yield running


@pytest.fixture
def listening(
    kinds: None,  # noqa: ARG001 - must be served first
    operator_kubeconfig: Path,
    tmp_path: Path,
) -> Iterator[OperatorProcess]:
    """Run an operator that lists them once a day, so that only plugins tell it."""
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path, "--slipped-pods-seconds=86400") as running:
        yield running


def slip_in(
    cluster: GpuCluster, name: str, groups: int, selector: dict[str, str] | None = None, **metadata: Any
) -> None:
    """Make a pod as it is without the webhook: no label, no gate."""
    spec = cluster.pod_spec(groups, **({} if selector is None else {"nodeSelector": selector}))
    del spec["schedulingGates"]
    body = {"metadata": {"name": name, **metadata}, "spec": spec}
    cluster.api.create(f"/api/v1/namespaces/{cluster.namespace}/pods", body)


def is_marked(cluster: GpuCluster, name: str) -> bool:
    """Tell whether a pod has label and annotation."""
    meta = cluster.pod(name)["metadata"]
    return LABEL_REQUESTS in meta.get("labels", {}) and ANNOTATION_WITHOUT_WEBHOOK in meta.get("annotations", {})


def test_a_pod_without_the_label_is_found_counted_and_explained(cluster: GpuCluster, looking: OperatorProcess) -> None:
    """It keeps its room from the next one, is told on itself, and goes out of the figure when it is gone."""
    node = cluster.add_node("gpu", [])
    slip_in(cluster, "past", 96)
    cluster.wait_bound("past")
    status = cluster.wait_told("Pod", "past", "1 pod was admitted without the webhook")
    assert condition(status, "WithoutWebhook") == ("True", "AdmittedWithoutWebhook")
    wait_for(lambda: is_marked(cluster, "past"), "its label")
    wait_for(lambda: "AdmittedWithoutWebhook" in dict(cluster.events("Pod", "past")), "an event on it")
    # Pods of other tests go once Kubernetes has noticed that their nodes are gone, which takes it a minute.
    wait_for(lambda: looking.metric(COUNT) == 1, "the figure")
    cluster.create_pod("next", 64)
    cluster.wait_told("Pod", "next", "GPU 0: 32 of 128")
    cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/past?gracePeriodSeconds=0")
    assert cluster.wait_bound("next") == node
    wait_for(lambda: looking.metric(COUNT) == 0, "the figure to fall")


@pytest.mark.usefixtures("looking")
def test_a_label_that_says_something_else_hides_nothing(cluster: GpuCluster) -> None:
    """A pod whose label has a forged value is found; one that lost it after its placement gets it back."""
    cluster.add_node("gpu", [], [])
    slip_in(cluster, "forged", 32, labels={LABEL_REQUESTS: "no"})
    wait_for(lambda: is_marked(cluster, "forged"), "the forged one to be marked")
    cluster.create_pod("placed", 32)
    cluster.wait_bound("placed")
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/placed"
    cluster.api.patch(path, {"metadata": {"labels": {LABEL_REQUESTS: None}}})

    def labels() -> dict[str, str]:
        found: dict[str, str] = cluster.pod("placed")["metadata"].get("labels", {})
        return found

    wait_for(lambda: labels().get(LABEL_REQUESTS) == "true", "the label to come back")
    assert not is_marked(cluster, "placed")


@pytest.mark.usefixtures("listening")
def test_what_a_plugin_reports_is_found_without_a_list(cluster: GpuCluster) -> None:
    """The CTANode names a pod that nobody here knows: it is looked up and labelled."""
    node = cluster.add_node("gpu", [])
    slip_in(cluster, "past", 32)
    cluster.wait_bound("past")
    cluster.publish(node, [held(32, "past", cluster.namespace), held(32, "gone", cluster.namespace)])
    wait_for(lambda: is_marked(cluster, "past"), "its label")
    cluster.wait_told("Pod", "past", "admitted without the webhook")
    assert cluster.api.find(f"{OURS}/namespaces/{cluster.namespace}/ctaworkloads/pod-gone") is None


def occupy(cluster: GpuCluster, node: str) -> None:
    """Bind a pod that asks for no groups and takes nearly all cpu of a node."""
    container = {"name": "main", "image": "localhost/none:1", "resources": {"requests": {"cpu": "63"}}}
    body = {"metadata": {"name": f"occupant-{node}"}, "spec": {"nodeName": node, "containers": [container]}}
    cluster.api.create(f"/api/v1/namespaces/{cluster.namespace}/pods", body)


@pytest.mark.usefixtures("looking")
def test_nodes_that_other_pods_have_filled_are_left_alone(cluster: GpuCluster) -> None:
    """A pod of its own, which nobody makes again, is not sent to the tight nodes that have no cpu for it."""
    tight = [cluster.add_node(f"tight-{letter}", [held(64)]) for letter in "abc"]
    roomy = cluster.add_node("roomy", [])
    for node in tight:
        occupy(cluster, node)
    cluster.wait_known(*tight, roomy)
    for name in ("first", "second"):  # the second is found by a list after the one that has counted them all
        slip_in(cluster, name, 8, selector={"no": "node"})
        wait_for(partial(is_marked, cluster, name), f"{name} to be found")
    container = cluster.pod_spec(32)["containers"][0]
    asking = {**container, "resources": {**container["resources"], "requests": {"cpu": "2"}}}
    cluster.create_pod("alone", 32, containers=[asking])
    assert cluster.wait_bound("alone") == roomy
