"""The control plane does not reach the operator: nothing that is made waits long or fails, and nothing is hidden."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.probes import LOOPBACK, free_ports
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_ALIGNMENT_ADVICE, DEFAULT_RESOURCE_NAME, LABEL_REQUESTS
from gpu_cluster import OURS
from operator_fixtures import kinds, operator_kubeconfig
from registered_operator import Registration, probe_pod, registered_operator
from relay import Relay
from terminal_user import Person

__all__ = ["kinds", "operator_kubeconfig"]

_PODS = 20


@pytest.fixture(scope="module")
def registered(
    control_plane: ControlPlane,
    kinds: None,  # noqa: ARG001 - must be served first
    operator_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Registration, Relay]]:
    """Run the operator behind the chart's registration, and return the way to it."""
    folder = tmp_path_factory.mktemp("unreachable")
    flags = ("--slipped-pods-seconds=1",)
    with registered_operator(control_plane, operator_kubeconfig, folder, settings=(), flags=flags) as made:
        yield made


def deployment(name: str, replicas: int = 1) -> Json:
    """Return a Deployment of vLLM servers that ask for 32 groups each."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": probe_pod()["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def test_pods_come_in_as_they_are_and_are_counted(registered: tuple[Registration, Relay]) -> None:
    """Packets are dropped: each pod waits for the time limit and comes in; metric, explain and doctor tell of it."""
    registration, way = registered
    api, namespace = registration.api, registration.new_namespace()
    registration.wait_seen(namespace)
    (operator,) = registration.operators
    way.block()
    path = f"/api/v1/namespaces/{namespace}/pods"
    with ThreadPoolExecutor(_PODS) as at_once:
        made = list(at_once.map(lambda _: api.create(path, probe_pod()), range(_PODS)))
    assert all(pod["spec"]["containers"][0]["args"] == ["m"] for pod in made)
    assert not any(LABEL_REQUESTS in pod["metadata"].get("labels", {}) for pod in made)
    api.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment("server"))
    wait_for(lambda: len(api.items(path)) == _PODS + 1, "the Deployment's pod")
    wait_for(lambda: all("set --gpu" in one for one in advice(api, path)), "each pod to be told")
    assert len(advice(api, path)) == _PODS + 1
    # Pods of other tests may be among them.
    wait_for(lambda: (operator.metric("cta_group_pods_without_webhook") or 0) > _PODS, "the metric")

    def message() -> str:
        workload = api.find(f"{OURS}/namespaces/{namespace}/ctaworkloads/deployment-server") or {}
        return str(workload.get("status", {}).get("message", ""))

    wait_for(lambda: "1 pod was admitted without the webhook" in message(), "the explanation")
    assert "admitted it in" in told_by_doctor(registration)
    way.unblock()
    registration.wait_seen(namespace)
    wait_for(lambda: "admitted it in" not in told_by_doctor(registration), "doctor to be content")


def advice(api: ApiClient, pods: str) -> list[str]:
    """Return what each pod is told that its arguments should be."""
    return [pod["metadata"].get("annotations", {}).get(ANNOTATION_ALIGNMENT_ADVICE, "") for pod in api.items(pods)]


def told_by_doctor(registration: Registration) -> str:
    """Return what ``kubectl cta doctor`` finds about the webhook."""
    _, facts = Person(registration.control_plane, "default").asks("doctor")
    return str([one for one in facts["findings"] if one["subject"].startswith("webhook")])


def test_another_port_of_the_operator_works(registered: tuple[Registration, Relay]) -> None:
    """The chart's value moves listener and registration together, while the old port stays closed to the API server."""
    registration, way = registered
    way.block()
    (port,) = free_ports(LOOPBACK, 1)
    old = registration.operators.pop()
    old.end()
    registration.start_replica(port)
    registration.register(port)
    registration.wait_seen("default")


def test_an_operator_that_is_gone_keeps_no_pod_away(registered: tuple[Registration, Relay]) -> None:
    """Nobody listens: pods of Deployment, StatefulSet and by hand come in at once, as their users wrote them."""
    registration, _ = registered
    api, namespace = registration.api, registration.new_namespace()
    for operator in registration.operators:
        operator.end()
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    api.create(f"{apps}/deployments", deployment("server"))
    stateful = deployment("stateful")
    stateful["spec"]["serviceName"] = "stateful"
    api.create(f"{apps}/statefulsets", stateful)
    api.create(f"/api/v1/namespaces/{namespace}/pods", probe_pod())
    pods = wait_for(
        lambda: found if len(found := api.items(f"/api/v1/namespaces/{namespace}/pods")) == 3 else None, "a pod of each"
    )
    for pod in pods:
        assert pod["spec"]["containers"][0]["args"] == ["m"]
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {DEFAULT_RESOURCE_NAME: "32"}
        assert "schedulingGates" not in pod["spec"]
