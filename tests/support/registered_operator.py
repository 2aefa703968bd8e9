"""The operator whose webhooks are registered as the chart registers them, at an API server without nodes.

The API server calls them by the chart's Service, under its name and with the authority that the operator publishes. The
Service leads to this machine: there is no kube-proxy here.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from admission_pods import cta_node
from chart_rendering import NAMESPACE, pod_templates, render
from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.probes import LOOPBACK, free_ports
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_ALIGNMENT, DEFAULT_RESOURCE_NAME, LABEL_REQUESTS
from gpu_cluster import OURS
from kubectl import Kubectl
from new_namespaces import new_namespace
from operator_process import OperatorProcess
from relay import Relay

NAME = "cta-group"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WEBHOOKS = (f"{ADMISSION}/mutatingwebhookconfigurations", f"{ADMISSION}/validatingwebhookconfigurations")
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/cta-group-webhook"
_SERVICE = f"/api/v1/namespaces/{NAMESPACE}/services/cta-group-operator"
_KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
PATIENT = ("webhook.timeoutSeconds=30",)
"""A slow machine is no reason for the API server to go on without the operator."""
LABEL = "registered-webhooks"
"""Of namespaces whose pods are looked at."""


def probe_pod() -> Json:
    """Return a pod that is labelled and changed by whoever looks at it."""
    limits = {DEFAULT_RESOURCE_NAME: "32"}
    container = {"name": "vllm", "image": "vllm/vllm-openai:v0.27.1", "args": ["m"], "resources": {"limits": limits}}
    return {"metadata": {"generateName": "probe-"}, "spec": {"containers": [container]}}


@dataclass
class Registration:
    """The replicas of the operator, and the namespaces whose pods come to them."""

    control_plane: ControlPlane
    kubeconfig: Path
    folder: Path
    settings: tuple[str, ...] = ()
    """Values of the chart, as for ``helm --set``."""
    flags: tuple[str, ...] = ()
    """Further options of the operator."""
    namespaces: list[str] = field(default_factory=lambda: ["default"])
    operators: list[OperatorProcess] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    port: int = 0
    """By which the operator is reached now."""

    @property
    def api(self) -> ApiClient:
        """The API as an administrator."""
        return self.control_plane.api

    def start_replica(self, port: int) -> OperatorProcess:
        """Start one more replica, with the chart's own arguments, on a port of this machine."""
        container = pod_templates(render("default", *self.settings))["cta-group-operator"]["spec"]["containers"][0]
        own = [one for one in container["args"][1:] if not one.startswith("--metrics-address=")]
        made = OperatorProcess(self.kubeconfig, NAMESPACE, self.folder, *own, f"--webhook-port={port}", *self.flags)
        self.operators.append(made)
        return made

    def register(self, port: int, *settings: str) -> None:
        """Apply the registration as Helm would, by a port of this machine: what it does not say stays."""
        found = [one for one in render("default", *self.settings, *settings) if one["kind"] in _KINDS]
        # Other namespaces are none of these tests' matter. `doctor` rehearses a pod in the default one.
        only = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": self.namespaces}
        for webhook in (webhook for one in found for webhook in one["webhooks"]):
            webhook["clientConfig"]["service"]["port"] = port
            webhook["namespaceSelector"]["matchExpressions"].append(only)
        Kubectl.admin(self.control_plane).apply(*found, manager="helm")
        self.port = port

    def new_namespace(self) -> str:
        """Make a namespace whose pods are looked at, and in which they can be made."""
        name = new_namespace(self.api, "registered", {LABEL: "on"})
        self.namespaces.append(name)
        if self.port:
            self.register(self.port)
        return name

    def bundles(self) -> list[str | None]:
        """Return what the API server trusts, by both configurations."""
        return [
            webhook["clientConfig"].get("caBundle")
            for path in WEBHOOKS
            for webhook in self.api.get(f"{path}/{NAME}")["webhooks"]
        ]

    def write_bundle(self, path: str, bundle: str, *, manager: str) -> None:
        """Let the webhooks of a configuration trust something, as a manager other than Helm and the operator."""
        kind = path.rpartition("/")[2].removesuffix("s")
        patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
        what = ("patch", kind, NAME, "--type=json", f"--patch={json.dumps(patch)}", f"--field-manager={manager}")
        done = Kubectl.admin(self.control_plane).run(*what)
        assert done.returncode == 0, done.stderr

    def wait_seen(self, namespace: str) -> None:
        """Wait until pods of a namespace come to the operator."""
        wait_for(lambda: self.is_seen(namespace), f"pods of {namespace} to come to the operator")

    def is_seen(self, namespace: str) -> bool:
        """Tell whether a pod that is made now comes to the operator, which also knows the GPUs."""
        path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
        metadata = self.api.create(path, probe_pod())["metadata"]
        return LABEL_REQUESTS in metadata.get("labels", {}) and ANNOTATION_ALIGNMENT in metadata.get("annotations", {})


def _leave_no_waiting_pod(made: Registration) -> None:
    """Delete the namespaces that were made; return when no pod of theirs can take a node of the tests that follow."""
    own = [name for name in made.namespaces if name != "default"]
    for name in own:
        made.api.discard(f"/api/v1/namespaces/{name}")

    def none_waits() -> bool:
        pods = [pod for name in own for pod in made.api.items(f"/api/v1/namespaces/{name}/pods")]
        return all("nodeName" in pod["spec"] for pod in pods)

    wait_for(none_waits, f"waiting pods of {own} to go")


def _add_gpus(api: ApiClient) -> str:
    """Publish a CTANode with the GPU that ``align --gpu h100-sxm`` judges by, of a node that takes no pod."""
    name = "aligned-h100"
    api.create("/api/v1/nodes", {"metadata": {"name": name}, "spec": {"unschedulable": True}})
    api.create(
        f"{OURS}/ctanodes", {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTANode", "metadata": {"name": name}}
    )
    status = cta_node(name, "h100-sxm").status.with_totals().as_api()
    api.patch(f"{OURS}/ctanodes/{name}/status", {"status": status})
    return name


@contextmanager
def registered_operator(
    control_plane: ControlPlane,
    kubeconfig: Path,
    folder: Path,
    *,
    settings: Sequence[str] = PATIENT,
    flags: Sequence[str] = (),
    replicas: int = 1,
    waits: bool = True,
) -> Iterator[tuple[Registration, Relay]]:
    """Run replicas behind the chart's registration until the block ends; the way to them can be blocked."""
    made = Registration(control_plane, kubeconfig, folder, tuple(settings), tuple(flags))
    made.ports = free_ports(LOOPBACK, replicas)
    api = control_plane.api
    with ExitStack() as undo:
        relay = Relay(*made.ports)
        undo.callback(relay.close)
        undo.callback(_leave_no_waiting_pod, made)
        made.register(relay.port)
        for path in WEBHOOKS:
            undo.callback(api.discard, f"{path}/{NAME}")
        spec = {"type": "ExternalName", "externalName": "localhost"}
        api.create(_SERVICE.rpartition("/")[0], {"metadata": {"name": "cta-group-operator"}, "spec": spec})
        undo.callback(api.discard, _SERVICE)
        node = _add_gpus(api)
        undo.callback(api.discard, f"/api/v1/nodes/{node}")
        undo.callback(api.discard, f"{OURS}/ctanodes/{node}")
        undo.callback(lambda: [one.end() for one in made.operators])
        for port in made.ports:
            made.start_replica(port)
        if waits:
            made.wait_seen("default")
        yield made, relay
