"""The operator with the chart's rights alone: it misses none, and none is there that it does not use."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from chart_rendering import NAMESPACE, of_kind, pod_templates, render
from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.control_plane_spec import ControlPlaneOptions
from cluster_harness.probes import LOOPBACK, free_ports
from cluster_harness.waiting import wait_for
from cta_group_core.names import LABEL_REQUESTS
from cta_group_operator.admission.trust import CONFIGURATIONS
from gpu_cluster import CAPACITY, OURS, GpuCluster
from guarded_pods import GUARDED, WORDS, guard_pods
from kubectl import Kubectl
from new_namespaces import new_namespace
from operator_fixtures import is_served
from operator_process import OperatorProcess, running_operator
from service_account import kubeconfig_of

_OPERATOR = f"system:serviceaccount:{NAMESPACE}:cta-group-operator"
_KINDS = (
    *("CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [_OPERATOR]}, {"level": "None"}],
}
_NOT_PLAYED = {
    ("update", "secrets"): "a certificate is renewed after two thirds of a year",
    ("delete", "ctaworkloads"): "a workload that asks no more, or was made again under its name",
    **{
        ("patch", kind): "a controller is woken only when it has not tried again by itself meanwhile"
        for kind in ("replicasets", "statefulsets", "daemonsets", "jobs")
    },
    ("patch", "resourcequotas/status"): "a limit is lowered where it is enforced first",
    ("patch", "ctanodes/status"): "a plugin that was silent for a quarter of an hour",
    ("delete", "pods"): "pods that hold borrowed groups under `reclaim: delete`, and pods that a kubelet refused",
}
"""Rights that the story below need not come to; other tests of the operator do."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the operator to the API server."""

    verb: str
    resource: str
    code: int


def _calls(log: Path) -> list[Call]:
    # The API server is still writing: its last line may be half there.
    lines = (line for line in log.read_text().splitlines(keepends=True) if line.endswith("\n"))
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [_call(event) for event in events if "objectRef" in event]


def _call(event: dict[str, Any]) -> Call:
    about = event["objectRef"]
    resource = "/".join(part for part in (about["resource"], about.get("subresource")) if part)
    return Call(event["verb"], resource, event.get("responseStatus", {}).get("code", 0))


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, Path]]:
    """Start a control plane that notes each call of the operator; return the note's file too."""
    folder = tmp_path_factory.mktemp("audit")
    policy, log = folder / "policy.json", folder / "audit.log"
    policy.write_text(json.dumps(_AUDIT_POLICY))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking")
    with ControlPlane.start(ControlPlaneOptions(extra_flags={"kube-apiserver": flags})) as running:
        yield running, log


def _arguments() -> list[str]:
    """Return the chart's arguments of the operator, on a port of this machine."""
    container = pod_templates(render("default"))["cta-group-operator"]["spec"]["containers"][0]
    own = [argument for argument in container["args"][1:] if not argument.startswith("--metrics-address=")]
    (port,) = free_ports(LOOPBACK, 1)
    return [*own, f"--webhook-port={port}"]


@pytest.fixture
def operator(audited: tuple[ControlPlane, Path], tmp_path: Path) -> Iterator[OperatorProcess]:
    """Run the operator as the chart does, but for the pod around it."""
    control_plane, _ = audited
    admin = Kubectl.admin(control_plane)
    admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    admin.apply(*(manifest for manifest in render("default") if manifest["kind"] in _KINDS))
    for plural in ("ctaquotas", "ctanodes", "ctaworkloads"):
        wait_for(partial(is_served, control_plane.api, f"{OURS}/{plural}"), f"the kind {plural}")
    kubeconfig = kubeconfig_of(control_plane, NAMESPACE, "cta-group-operator", tmp_path)
    with running_operator(kubeconfig, NAMESPACE, tmp_path, *_arguments()) as running:
        wait_for(running.ready, "the operator to be ready")
        yield running


def _play(cluster: GpuCluster) -> None:
    """Play a quota that refuses, is raised and is deleted, and pods that are placed and explained."""
    api, namespace = cluster.api, cluster.namespace
    cluster.add_node("gpu", [], [])
    quota = cluster.declare_quota(32)
    limit = f"/api/v1/namespaces/{namespace}/resourcequotas/cta-group"
    wait_for(lambda: (api.find(limit) or {}).get("status"), "the quota to be enforced")
    wait_for(lambda: api.get(f"{OURS}/ctaquotas/{quota}").get("status"), "the status of the CTAQuota")
    cluster.deploy("servers", 32, replicas=2)

    def message() -> str:
        workload = api.find(f"{OURS}/namespaces/{namespace}/ctaworkloads/deployment-servers") or {}
        return str(workload.get("status", {}).get("message", ""))

    wait_for(lambda: "quota 32, used 32, short 32" in message(), "the explanation of the denial")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    wait_for(lambda: any("nodeName" in pod["spec"] for pod in api.items(pods)), "a placed pod")
    api.patch(f"{OURS}/ctaquotas/{quota}", {"spec": {"groups": 64}})
    wait_for(lambda: len([pod for pod in api.items(pods) if "nodeName" in pod["spec"]]) == 2, "the second pod")
    api.delete(f"{OURS}/ctaquotas/{quota}")
    wait_for(lambda: api.find(limit) is None, "the end of the quota")


def _play_a_refused_release(cluster: GpuCluster) -> None:
    """Play a pod that somebody's policy guards: why it is not released is told, and the pod behind it gets its room."""
    node = cluster.add_node("whole", [])
    idle = {"containers": [{"name": "main", "image": "localhost/none:1"}], "nodeSelector": {"no": "node"}}
    guard_pods(cluster.api, cluster.namespace, idle)
    cluster.wait_known(node)
    spec = cluster.pod_spec(CAPACITY, nodeSelector={"kubernetes.io/hostname": node})
    labels = {LABEL_REQUESTS: "true", **GUARDED}
    pods = f"/api/v1/namespaces/{cluster.namespace}/pods"
    cluster.api.create(pods, {"metadata": {"name": "guarded", "labels": labels}, "spec": spec})
    told = "cannot be released: the API server does not let the operator take its scheduling gate off"
    cluster.wait_told("Pod", "guarded", told, WORDS)
    cluster.create_pod("behind", CAPACITY, nodeSelector={"kubernetes.io/hostname": node})
    assert cluster.wait_bound("behind") == node

    def events() -> list[str]:
        return [message for reason, message in cluster.events("Pod", "guarded") if reason == "ReleaseRefused"]

    (event,) = wait_for(events, "the event of the guarded pod")
    assert WORDS in event


def test_the_operator_uses_every_right_and_misses_none(
    audited: tuple[ControlPlane, Path], operator: OperatorProcess
) -> None:
    """The API server refuses nothing, and what was granted and not used is named above with its reason."""
    control_plane, log = audited
    api = control_plane.api
    cluster = GpuCluster(api, new_namespace(api, "rights"))
    _play(cluster)
    _play_a_refused_release(cluster)
    for resource in CONFIGURATIONS:
        wait_for(partial(_bundle, api, resource.path(name="cta-group")), "the certificate authority")
    wait_for(lambda: not _unused(log), "the last right to be used", seen=lambda: f"unused {_unused(log)}")
    operator.end()
    assert [call for call in _calls(log) if call.code == 403] == []


def _unused(log: Path) -> set[tuple[str, str]]:
    """Return what was granted and not used so far, without a reason above."""
    used = {(call.verb, call.resource) for call in _calls(log)}
    return _granted() - used - set(_NOT_PLAYED)


def _bundle(api: ApiClient, path: str) -> str | None:
    found: str | None = api.get(path)["webhooks"][0]["clientConfig"].get("caBundle")
    return found


@cache
def _granted() -> set[tuple[str, str]]:
    roles = [
        role
        for kind in ("ClusterRole", "Role")
        for role in of_kind(render("default"), kind).values()
        if role["metadata"]["labels"]["app.kubernetes.io/component"] == "operator"
    ]
    rules = [rule for role in roles for rule in role["rules"]]
    return {(verb, resource) for rule in rules for verb in rule["verbs"] for resource in rule["resources"]}
