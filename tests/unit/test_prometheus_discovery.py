"""Targets for Prometheus from pods, services and endpoint slices, as its own Kubernetes discovery would name them."""

from typing import Any

from cluster_harness.discovery import endpoint_targets, pod_targets

POD: dict[str, Any] = {
    "metadata": {"namespace": "cta-group", "name": "operator-1", "labels": {"app.kubernetes.io/component": "operator"}},
    "spec": {
        "nodeName": "node-1",
        "containers": [
            {"name": "sidecar"},
            {
                "name": "operator",
                "ports": [{"name": "webhook", "containerPort": 9443}, {"name": "metrics", "containerPort": 9402}],
            },
        ],
    },
    "status": {"phase": "Running", "podIP": "10.88.1.5"},
}
SERVICE = {"metadata": {"namespace": "cta-group", "name": "operator", "labels": {"tier": "control"}}}
SLICE: dict[str, Any] = {
    "metadata": {
        "namespace": "cta-group",
        "name": "operator-x",
        "labels": {"kubernetes.io/service-name": "operator"},
    },
    "endpoints": [
        {"addresses": ["10.88.1.5"], "targetRef": {"name": "operator-1"}},
        {"addresses": ["10.88.1.6"], "conditions": {"ready": False}},
    ],
    "ports": [{"name": "metrics", "port": 9402}],
}


def test_each_declared_port_of_a_pod_is_a_target() -> None:
    """A pod with two ports gives two targets with the labels of the pod and of the port's container."""
    webhook, metrics = pod_targets([POD])
    assert webhook["targets"] == ["10.88.1.5:9443"]
    assert metrics == {
        "targets": ["10.88.1.5:9402"],
        "labels": {
            "__meta_kubernetes_namespace": "cta-group",
            "__meta_kubernetes_pod_name": "operator-1",
            "__meta_kubernetes_pod_label_app_kubernetes_io_component": "operator",
            "__meta_kubernetes_pod_node_name": "node-1",
            "__meta_kubernetes_pod_phase": "Running",
            "__meta_kubernetes_pod_ip": "10.88.1.5",
            "__meta_kubernetes_pod_container_name": "operator",
            "__meta_kubernetes_pod_container_port_name": "metrics",
            "__meta_kubernetes_pod_container_port_number": "9402",
        },
    }


def test_a_pod_without_an_address_is_no_target() -> None:
    """A pod that nobody has started yet cannot be scraped."""
    assert pod_targets([{**POD, "status": {"phase": "Pending"}}]) == []


def test_each_address_of_a_service_is_a_target_ready_or_not() -> None:
    """Both replicas are scraped; the one whose pod is known has the pod's labels, and the service's beside them."""
    known, unknown = endpoint_targets([SLICE], [SERVICE], [POD])
    assert (known["targets"], unknown["targets"]) == (["10.88.1.5:9402"], ["10.88.1.6:9402"])
    assert known["labels"]["__meta_kubernetes_pod_node_name"] == "node-1"
    assert known["labels"]["__meta_kubernetes_pod_container_name"] == "operator"
    assert known["labels"]["__meta_kubernetes_service_label_tier"] == "control"
    assert known["labels"]["__meta_kubernetes_endpoint_port_name"] == "metrics"
    assert "__meta_kubernetes_pod_name" not in unknown["labels"]


def test_a_slice_of_no_known_service_is_no_target() -> None:
    """A slice may outlive its service by a moment, and a service may have no endpoints yet."""
    assert endpoint_targets([SLICE], [], [POD]) == []
    assert endpoint_targets([{**SLICE, "endpoints": None, "ports": None}], [SERVICE], []) == []
