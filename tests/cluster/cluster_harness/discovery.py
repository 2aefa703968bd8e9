"""What Prometheus' Kubernetes discovery finds, without it: Debian builds Prometheus without that part.

Pure: objects as in YAML in, groups of Prometheus' file discovery out, with those of its labels (roles ``pod`` and
``endpoints``) that the Prometheus operator's relabelings read.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cluster_harness.scrape_jobs import META, Json, label_name

_SERVICE_OF_SLICE = "kubernetes.io/service-name"


def pod_targets(pods: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Return a target for each declared port of each container of each pod that has an address."""
    return [
        _target(pod["status"]["podIP"], port["containerPort"], _pod_labels(pod), _port_labels(container, port))
        for pod in pods
        if pod["status"].get("podIP")
        for container, port in _ports(pod)
    ]


def endpoint_targets(
    slices: Iterable[Mapping[str, Any]], services: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]
) -> list[Json]:
    """Return a target for each address and port of each service, ready or not."""
    service_by_key = {_key(service): service for service in services}
    pod_by_key = {_key(pod): pod for pod in pods}
    found = []
    for endpoint_slice in slices:
        metadata = endpoint_slice["metadata"]
        service = service_by_key.get((metadata["namespace"], metadata.get("labels", {}).get(_SERVICE_OF_SLICE)))
        if service is None:
            continue
        for endpoint, port in _pairs(endpoint_slice):
            pod = pod_by_key.get((metadata["namespace"], endpoint.get("targetRef", {}).get("name")))
            name = {f"{META}endpoint_port_name": port.get("name") or ""}
            about_pod = _pod_labels(pod, port["port"]) if pod else {}
            found += [
                _target(it, port["port"], _service_labels(service), name, about_pod) for it in endpoint["addresses"]
            ]
    return found


def _target(host: str, port: int, *labels: Mapping[str, str]) -> Json:
    merged = {name: value for some in labels for name, value in some.items()}
    return {"targets": [f"{host}:{port}"], "labels": merged}


def _ports(pod: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", []):
            yield container, port


def _pairs(endpoint_slice: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for endpoint in endpoint_slice.get("endpoints") or []:
        for port in endpoint_slice.get("ports") or []:
            yield endpoint, port


def _pod_labels(pod: Mapping[str, Any], container_port: int | None = None) -> dict[str, str]:
    """Return the labels of a pod, and those of the container that declares the port."""
    containers = (container for container, port in _ports(pod) if port["containerPort"] == container_port)
    container = next(containers, None)
    return {
        **_object_labels("pod", pod),
        f"{META}pod_node_name": pod["spec"].get("nodeName", ""),
        f"{META}pod_phase": pod["status"].get("phase", ""),
        f"{META}pod_ip": pod["status"].get("podIP", ""),
        **({f"{META}pod_container_name": container["name"]} if container else {}),
    }


def _port_labels(container: Mapping[str, Any], port: Mapping[str, Any]) -> dict[str, str]:
    return {
        f"{META}pod_container_name": container["name"],
        f"{META}pod_container_port_name": port.get("name", ""),
        f"{META}pod_container_port_number": str(port["containerPort"]),
    }


def _service_labels(service: Mapping[str, Any]) -> dict[str, str]:
    return _object_labels("service", service)


def _object_labels(kind: str, found: Mapping[str, Any]) -> dict[str, str]:
    metadata = found["metadata"]
    own = {f"{META}{kind}_label_{label_name(name)}": value for name, value in metadata.get("labels", {}).items()}
    return {f"{META}namespace": metadata["namespace"], f"{META}{kind}_name": metadata["name"], **own}


def _key(found: Mapping[str, Any]) -> tuple[str, str]:
    return found["metadata"]["namespace"], found["metadata"]["name"]
