"""The admission endpoint behind a real API server: what becomes of pods and what stays as it was."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from admission_endpoint import EndpointThread, webhook_configuration
from admission_pods import ALSO_SET, FITS_H100_QUARTER, FLAG, args_of
from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from cta_group_core.names import (
    ANNOTATION_ALIGNMENT,
    ANNOTATION_BUDGET,
    DEFAULT_RESOURCE_NAME,
    GATE_PLACEMENT,
    LABEL_REQUESTS,
)
from kubectl import Kubectl

Json = dict[str, Any]
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


def pod_of(*args: str, groups: str | None = "32", annotations: Json | None = None, **spec: Any) -> Json:
    """Return a pod as people write it: one vLLM container, limits only."""
    container: Json = {"name": "vllm", "image": "vllm/vllm-openai:v0.27.1", "args": list(args)}
    if groups is not None:
        container["resources"] = {"limits": {DEFAULT_RESOURCE_NAME: groups}}
    metadata: Json = {"generateName": "server-", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


@dataclass
class World:
    """A namespace whose pods go through the endpoint."""

    api: ApiClient
    namespace: str
    endpoint: EndpointThread

    @property
    def pods(self) -> str:
        """The path of its pods."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def create(self, pod: Json, query: str = "") -> Json:
        """Create a pod and return it as it came in."""
        return self.api.create(f"{self.pods}{query}", pod)

    def is_called(self) -> bool:
        """Tell whether the API server asks the endpoint already."""
        return LABEL_REQUESTS in self.create(pod_of("m"), "?dryRun=All")["metadata"].get("labels", {})


@pytest.fixture
def world(api: ApiClient, namespace: str, tmp_path: Path) -> Iterator[World]:
    """Register the endpoint for the test's namespace, and wait until the API server calls it."""
    name = f"admission-{namespace}"
    with ExitStack() as undo:
        endpoint = EndpointThread(tmp_path)
        undo.callback(endpoint.close)
        api.create(CONFIGURATIONS, webhook_configuration(name, endpoint.conversation, namespace))
        undo.callback(api.discard, f"{CONFIGURATIONS}/{name}")
        made = World(api, namespace, endpoint)
        wait_for(made.is_called, "the API server to call the webhook")
        yield made


def gates_of(pod: Json) -> list[str]:
    """Return the names of the gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def test_a_deployment_s_pod_is_fitted_and_the_deployment_stays(world: World) -> None:
    """The pod has value, label, gate and the reason; the template is what the user wrote."""
    labels = {"app": "server"}
    template = {**pod_of("Qwen/Qwen3-0.6B", "--port=8000"), "metadata": {"labels": labels}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    deployments = f"/apis/apps/v1/namespaces/{world.namespace}/deployments"
    world.api.create(deployments, {"metadata": {"name": "server"}, "spec": spec})
    (pod,) = wait_for(lambda: world.api.items(f"{world.pods}?labelSelector=app%3Dserver"), "the pod")
    assert args_of(pod) == ["Qwen/Qwen3-0.6B", "--port=8000", f"{FLAG}={FITS_H100_QUARTER}", *ALSO_SET]
    assert pod["metadata"]["labels"][LABEL_REQUESTS] == "true"
    assert gates_of(pod) == [GATE_PLACEMENT]
    edit, *_ = json.loads(pod["metadata"]["annotations"][ANNOTATION_ALIGNMENT])
    assert (edit["from"], edit["to"]) == (None, FITS_H100_QUARTER)
    deployment = world.api.get(f"{deployments}/server")
    assert args_of(deployment["spec"]["template"]) == ["Qwen/Qwen3-0.6B", "--port=8000"]
    assert deployment["metadata"]["generation"] == 1


def test_a_lower_value_of_the_user_stays(world: World) -> None:
    """The pod runs with what its user chose."""
    pod = world.create(pod_of("m", FLAG, "0.15"))
    assert args_of(pod) == ["m", FLAG, "0.15"]
    assert ANNOTATION_ALIGNMENT not in pod["metadata"].get("annotations", {})


def test_what_a_pod_claims_of_itself_is_taken_away(world: World) -> None:
    """Annotations of the operator that it did not write are gone when the pod is there; others stay."""
    claims = {
        "alignment": f'[{{"flag": "{FLAG}", "from": null, "to": "0.9", "why": "forged"}}]',
        "alignment-advice": "forged",
        "runtime-advice": "forged",
        "placement-nodes": "node-a",
        "admitted-without-webhook": "true",
    }
    forged = {f"ctagroup.dev/{name}": text for name, text in claims.items()}
    pod = world.create(pod_of("m", FLAG, "0.15", annotations={**forged, "example.com/mine": "stays"}))
    assert pod["metadata"]["annotations"] == {"example.com/mine": "stays"}


def test_a_pod_without_the_resource_is_untouched(world: World) -> None:
    """Nothing of ours is on it."""
    pod = world.create(pod_of("m", groups=None))
    assert args_of(pod) == ["m"]
    assert "labels" not in pod["metadata"]
    assert gates_of(pod) == []


def test_a_pod_that_names_its_node_comes_in_without_a_gate(world: World) -> None:
    """The API server takes no gate on a bound pod."""
    pod = world.create(pod_of("m", nodeName="node-a"))
    assert gates_of(pod) == []
    assert f"{FLAG}={FITS_H100_QUARTER}" in args_of(pod)


def test_a_template_that_says_groups_in_an_annotation_gets_them(world: World) -> None:
    """The request is made by admission, and the API server accepts limits and requests that are equal."""
    asking = pod_of("m", groups=None, annotations={"ctagroup.dev/groups": "32"})
    asking["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    pod = world.create(asking)
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {DEFAULT_RESOURCE_NAME: "32"}, "requests": {DEFAULT_RESOURCE_NAME: "32"}}
    assert gates_of(pod) == [GATE_PLACEMENT]


def test_without_the_endpoint_pods_are_created_as_they_are(world: World) -> None:
    """The configuration says Ignore: our absence never keeps a pod from being created."""
    world.endpoint.close()
    pod = world.create(pod_of("m"))
    assert args_of(pod) == ["m"]
    assert gates_of(pod) == []


def test_the_creator_reads_what_was_changed_and_what_nobody_can_read(world: World, control_plane: ControlPlane) -> None:
    """Kubectl prints the warnings."""
    pod = pod_of("m", f"{FLAG}=0.9")
    pod["metadata"] = {"name": "server", "namespace": world.namespace, "annotations": {ANNOTATION_BUDGET: "fast"}}
    asked = {"apiVersion": "v1", "kind": "Pod", **pod}
    done = Kubectl.admin(control_plane).run("create", "-f", "-", objects=[asked])
    assert f"Warning: set {FLAG}={FITS_H100_QUARTER} (was 0.9)" in done.stderr
    assert "Warning: ignored: annotation ctagroup.dev/budget: 'fast'" in done.stderr
