"""A cluster for ``kubectl cta doctor``: nothing is wrong with it until a test changes something."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cta_group_cli.doctor_facts import (
    Machine,
    Policy,
    PolicyBinding,
    Rehearsal,
    ReleaseWorkload,
    RuntimeClass,
    WebhookConfiguration,
)
from cta_group_cli.errors import AccessDenied, ClusterUnavailable, KindMissing
from cta_group_cli.objects import Pod
from cta_group_cli.ports import Node, Unreadable
from cta_group_core.names import LABEL_REQUESTS
from cta_group_core.nodes import Allocation, Condition, ConditionStatus, GpuStatus, NodeStatus, PcieLink
from gpu_strategies import uuid_of

RESOURCE = "nvidia.com/cta-group"
INSTALLED = "2026-12-01T00:00:00Z"
LATER = "2026-12-02T00:00:00Z"
_SEEN = Rehearsal({LABEL_REQUESTS: "true"}, 0.02)
_TYPES = ("Registered", "GPUsHealthy", "MPSReady", "Compatible")


def gpu(index: int = 0, **more: Any) -> GpuStatus:
    """Return an H200 in order, of which one pod holds 32 groups."""
    facts: dict[str, Any] = {
        "uuid": uuid_of(index),
        "index": index,
        "product": "NVIDIA H200",
        "compute_capability": "9.0",
        "sm_count": 132,
        "capacity": 128,
        "minimum": 8,
        "step": 8,
        "memory_mib": 143155,
        "reserve_mib": 1024,
        "link": PcieLink(width=16, width_max=16, generation=5, generation_max=5),
        "mig_mode": "Disabled",
        "compute_mode": "ExclusiveProcess",
        "persistence_mode": True,
        "free": 96,
        "largest_fit": 96,
        "allocations": (Allocation(namespace="team-a", pod="vllm-0", container="vllm", groups=32, memory_mib=35532),),
    }
    return GpuStatus(**{**facts, **more})


def status(*gpus: GpuStatus, **more: Any) -> NodeStatus:
    """Return what a plugin publishes when all is well."""
    conditions = tuple(Condition(type=one, status=ConditionStatus.TRUE, reason="Fine") for one in _TYPES)
    facts: dict[str, Any] = {
        "resource_name": RESOURCE,
        "driver_version": "580.159.04",
        "cuda_version": "13.0",
        "conditions": conditions,
        "gpus": gpus or (gpu(),),
    }
    return NodeStatus(**{**facts, **more}).with_totals()


def machine(
    name: str,
    offers: Mapping[str, str] | None = None,
    *,
    kubelet: str = "v1.35.3",
    labels: Mapping[str, str] | None = None,
) -> Machine:
    """Return a Node with the 128 groups of one GPU, and other resources or another number by ``offers``."""
    allocatable = {RESOURCE: "128", **(offers or {})}
    told = {"allocatable": allocatable, "nodeInfo": {"kubeletVersion": kubelet}}
    about = {"name": name, "uid": f"uid-of-{name}", "labels": dict(labels or {})}
    return Machine.model_validate({"metadata": about, "status": told})


def workload(component: str, *args: str, wanted: int = 1, ready: int | None = None, **more: Any) -> ReleaseWorkload:
    """Return a DaemonSet or the Deployment of the release."""
    ready = wanted if ready is None else ready
    counts = (
        {"readyReplicas": ready}
        if component == "operator"
        else {"desiredNumberScheduled": wanted, "numberReady": ready, "updatedNumberScheduled": wanted}
    )
    template = {"spec": {"containers": [{"name": component, "args": list(args)}], **more.pop("spec", {})}}
    return ReleaseWorkload.model_validate(
        {
            "metadata": metadata(f"cta-group-{component}", "cta-group", component),
            "spec": {"replicas": wanted, "template": template},
            "status": {**counts, **more},
        }
    )


def metadata(name: str, namespace: str, component: str) -> dict[str, Any]:
    """Return the metadata of one of the chart's objects."""
    labels = {"app.kubernetes.io/part-of": "cta-group", "app.kubernetes.io/component": component}
    return {"name": name, "namespace": namespace, "creationTimestamp": INSTALLED, "labels": labels}


def release_pod(component: str, node: str, **changes: Any) -> Pod:
    """Return a pod of the release that is ready; ``changes`` replace parts of its status."""
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return Pod.model_validate(
        {
            "metadata": metadata(f"cta-group-{component}-x", "cta-group", component),
            "spec": {"nodeName": node, "containers": [{"name": component}]},
            "status": {**ready, **changes},
        }
    )


def tenant(name: str = "vllm-0", *, node: str = "gpu-1", seen: bool = True, groups: int = 32, **spec: Any) -> Pod:
    """Return a pod that asks for groups and that the webhook has seen."""
    image = spec.pop("image", "vllm/vllm-openai:v0.27.1")
    limits = {RESOURCE: str(groups)} if groups else {}
    return Pod.model_validate(
        {
            "metadata": {
                "name": name,
                "namespace": spec.pop("namespace", "team-a"),
                "creationTimestamp": LATER,
                "labels": {LABEL_REQUESTS: "true"} if seen else {},
            },
            "spec": {
                "nodeName": node,
                "containers": [{"name": "vllm", "image": image, "resources": {"limits": limits}}],
                **spec,
            },
            "status": {"phase": "Running"},
        }
    )


def webhook(ca_bundle: str = "LS0t", *, mutates: bool = True) -> WebhookConfiguration:
    """Return the chart's webhook that changes pods, or the one that refuses them."""
    excluded = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "cta-group"]}
    one = {
        "clientConfig": {"caBundle": ca_bundle} if ca_bundle else {},
        "timeoutSeconds": 2,
        "namespaceSelector": {"matchExpressions": [excluded]},
    }
    content = {"metadata": metadata("cta-group", "", "operator"), "webhooks": [one], "mutates": mutates}
    return WebhookConfiguration.model_validate(content)


def policy(name: str = "cta-group-units", *warnings: str) -> Policy:
    """Return one of the chart's policies."""
    found = [{"fieldRef": "spec.validations[0].expression", "warning": warning} for warning in warnings]
    return Policy.model_validate(
        {"metadata": metadata(name, "", "policies"), "status": {"typeChecking": {"expressionWarnings": found}}}
    )


def binding(name: str = "cta-group-units") -> PolicyBinding:
    """Return a binding of the policy of that name."""
    return PolicyBinding.model_validate({"metadata": metadata(name, "", "policies"), "spec": {"policyName": name}})


@dataclass
class FakeDoctorReader:
    """Answers from lists; see :class:`cta_group_cli.doctor_facts.DoctorReader`."""

    all_nodes: Sequence[Node | Unreadable] = (Node("gpu-1", status()),)
    all_machines: Sequence[Machine] = (machine("gpu-1"),)
    workloads: Sequence[ReleaseWorkload] = (
        workload("plugin", "run", "--max-clients=48"),
        workload("mps", "mps"),
        workload("operator", "run", "--webhook-port=9443", wanted=2),
    )
    pods: Sequence[Pod] = (release_pod("plugin", "gpu-1"), release_pod("mps", "gpu-1"))
    all_webhooks: Sequence[WebhookConfiguration] = (webhook(), webhook(mutates=False))
    all_policies: Sequence[Policy] = (policy(),)
    bindings: Sequence[PolicyBinding] = (binding(),)
    classes: Sequence[RuntimeClass] = ()
    tenants: Sequence[Pod] = (tenant(),)
    gates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    rehearsal: Rehearsal | ClusterUnavailable = _SEEN
    denied: frozenset[str] = frozenset()
    """Methods that whoever asks may not use."""
    has_kinds: bool = True

    def but(self, **changes: Any) -> "FakeDoctorReader":
        """Return the cluster with something changed."""
        return replace(self, **changes)

    def nodes(self) -> Sequence[Node | Unreadable]:
        """Return the CTANodes."""
        self._check("nodes")
        if not self.has_kinds:
            raise KindMissing("this cluster knows no CTANodes")
        return self.all_nodes

    def machines(self) -> Sequence[Machine]:
        """Return the Nodes."""
        self._check("machines")
        return self.all_machines

    def release_workloads(self) -> Sequence[ReleaseWorkload]:
        """Return the workloads of the release."""
        self._check("release_workloads")
        return self.workloads

    def release_pods(self) -> Sequence[Pod]:
        """Return the pods of the release."""
        self._check("release_pods")
        return self.pods

    def webhooks(self) -> Sequence[WebhookConfiguration]:
        """Return the webhooks."""
        self._check("webhooks")
        return self.all_webhooks

    def policies(self) -> Sequence[Policy]:
        """Return the policies."""
        self._check("policies")
        return self.all_policies

    def policy_bindings(self) -> Sequence[PolicyBinding]:
        """Return their bindings."""
        self._check("policy_bindings")
        return self.bindings

    def runtime_classes(self) -> Sequence[RuntimeClass]:
        """Return the runtime classes."""
        self._check("runtime_classes")
        return self.classes

    def tenant_pods(self, node: str | None) -> Sequence[Pod]:
        """Return the pods of a node, or all."""
        self._check("tenant_pods")
        return [pod for pod in self.tenants if node in {None, pod.spec.node_name}]

    def kubelet_gates(self, node: str) -> Mapping[str, bool]:
        """Return the gates of the kubelet of a node."""
        self._check("kubelet_gates")
        return self.gates.get(node, {})

    def rehearse_pod(self, resource: str, groups: int) -> Rehearsal:
        """Return what became of the pod; it must ask for something that GPUs here take."""
        self._check("rehearse_pod")
        assert (resource, groups) == (RESOURCE, 8)
        if isinstance(self.rehearsal, ClusterUnavailable):
            raise self.rehearsal
        return self.rehearsal

    def _check(self, method: str) -> None:
        if method in self.denied:
            raise AccessDenied(f"the cluster refuses {method}: 403 forbidden")
