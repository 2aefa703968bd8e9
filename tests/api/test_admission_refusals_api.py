"""What the operator refuses, through the API server: the creator's error, the owner's event, and the explanation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_ALIGN
from gpu_cluster import OURS
from operator_fixtures import kinds, operator_kubeconfig
from refused_pods import refusal
from registered_operator import Registration, probe_pod, registered_operator

__all__ = ["kinds", "operator_kubeconfig"]

_SENTENCE = "vLLM asks for tensor parallel size 2, and a slice of 32 groups is on one GPU, where only one rank runs"


@pytest.fixture(scope="module")
def registration(
    control_plane: ControlPlane,
    kinds: None,  # noqa: ARG001 - must be served first
    operator_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Registration]:
    """Run the operator behind the chart's registration."""
    folder = tmp_path_factory.mktemp("registered")
    with registered_operator(control_plane, operator_kubeconfig, folder) as (made, _):
        yield made


@pytest.fixture
def tenants(registration: Registration) -> Iterator[str]:
    """Make a namespace whose pods are looked at."""
    name = registration.new_namespace()
    yield name
    registration.api.delete(f"/api/v1/namespaces/{name}")


def two_ranks() -> Json:
    """Return a pod that no GPU can run: two ranks in one slice."""
    pod = probe_pod()
    pod["spec"]["containers"][0]["args"] = ["m", "-tp=2"]
    return pod


def test_the_creator_gets_the_sentence_as_the_api_server_s_error(api: ApiClient, tenants: str) -> None:
    """It says what to write instead, and by which annotation the pod comes in all the same."""
    told = refusal(api, tenants, two_ranks())
    assert told is not None
    assert 'admission webhook "servers.ctagroup.dev" denied the request: ' in told
    assert f"{_SENTENCE}: use size 1, or ask for 2 whole GPUs (256 groups)" in told
    reported = two_ranks()
    reported["metadata"]["annotations"] = {ANNOTATION_ALIGN: "report"}
    assert f'{ANNOTATION_ALIGN}: "report"' in told
    assert refusal(api, tenants, reported) is None


def test_a_deployment_s_refusal_is_an_event_and_explained(api: ApiClient, tenants: str) -> None:
    """The Deployment itself is accepted; its ReplicaSet tells why there is no pod, and so does the CTAWorkload."""
    labels = {"app": "server"}
    template = {"metadata": {"labels": labels}, "spec": two_ranks()["spec"]}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    api.create(f"/apis/apps/v1/namespaces/{tenants}/deployments", {"metadata": {"name": "server"}, "spec": spec})

    def events() -> list[str]:
        found = api.items(f"/api/v1/namespaces/{tenants}/events")
        return [one["message"] for one in found if one["reason"] == "FailedCreate" and _SENTENCE in one["message"]]

    wait_for(events, "the event on the ReplicaSet")

    def message() -> str:
        workload = api.find(f"{OURS}/namespaces/{tenants}/ctaworkloads/deployment-server") or {}
        return str(workload.get("status", {}).get("message", ""))

    wait_for(lambda: _SENTENCE in message(), "the explanation")
    assert "(webhook servers.ctagroup.dev)" in message()
    assert api.items(f"/api/v1/namespaces/{tenants}/pods") == []
