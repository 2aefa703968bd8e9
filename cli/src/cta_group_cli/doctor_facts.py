"""What ``kubectl cta doctor`` reads of a cluster: objects, and the interface that gives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import Field

from cta_group_cli.objects import Metadata, Pod, PodTemplate
from cta_group_cli.ports import Node, Unreadable
from cta_group_core.nodes import ApiModel
from cta_group_core.selectors import LabelSelector


class NodeInfo(ApiModel):
    """What kubelet says about itself."""

    kubelet_version: str = ""


class MachineStatus(ApiModel):
    """What kubelet says about its node."""

    allocatable: dict[str, str] = Field(default_factory=dict)
    node_info: NodeInfo = NodeInfo()


class Machine(ApiModel):
    """A Node of Kubernetes."""

    metadata: Metadata
    status: MachineStatus = MachineStatus()

    def offers(self, resource: str) -> int:
        """Return how much of an extended resource can be given out."""
        text = self.status.allocatable.get(resource, "0")
        return int(text) if text.isdecimal() else 0


class WorkloadSpec(ApiModel):
    """How many pods are wanted and what they are made from."""

    replicas: int = 1
    template: PodTemplate = PodTemplate()


class ReleaseStatus(ApiModel):
    """How many pods there are; a DaemonSet and a Deployment say it in other words."""

    desired_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    number_ready: int = 0
    ready_replicas: int = 0


class ReleaseWorkload(ApiModel):
    """A DaemonSet or Deployment of the chart."""

    metadata: Metadata
    spec: WorkloadSpec = WorkloadSpec()
    status: ReleaseStatus = ReleaseStatus()

    def option(self, flag: str) -> str | None:
        """Return the value of ``--flag=value`` of its program; None when it is not given."""
        args = [arg for container in self.spec.template.spec.containers for arg in container.args]
        return next((arg.removeprefix(f"{flag}=") for arg in args if arg.startswith(f"{flag}=")), None)


class ClientConfig(ApiModel):
    """How the API server reaches a webhook."""

    ca_bundle: str = ""


class Webhook(ApiModel):
    """One webhook of a configuration."""

    client_config: ClientConfig = ClientConfig()
    timeout_seconds: int = 10
    namespace_selector: LabelSelector = LabelSelector()


class WebhookConfiguration(ApiModel):
    """A webhook configuration of the chart."""

    metadata: Metadata
    mutates: bool = True
    """It is a MutatingWebhookConfiguration; the other kind only refuses."""
    webhooks: tuple[Webhook, ...] = ()


class ExpressionWarning(ApiModel):
    """What the API server finds wrong with an expression."""

    warning: str = ""


class TypeChecking(ApiModel):
    """What the API server finds wrong with a policy."""

    expression_warnings: tuple[ExpressionWarning, ...] = ()


class PolicyStatus(ApiModel):
    """What the API server says about a policy."""

    type_checking: TypeChecking = TypeChecking()


class Policy(ApiModel):
    """A ValidatingAdmissionPolicy of the chart."""

    metadata: Metadata
    status: PolicyStatus = PolicyStatus()


class BindingSpec(ApiModel):
    """Which policy a binding puts into force."""

    policy_name: str = ""


class PolicyBinding(ApiModel):
    """A ValidatingAdmissionPolicyBinding of the chart."""

    metadata: Metadata
    spec: BindingSpec = BindingSpec()


class RuntimeClass(ApiModel):
    """A RuntimeClass."""

    metadata: Metadata
    handler: str = ""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What the API server made of a pod that was only rehearsed."""

    labels: Mapping[str, str]
    seconds: float


class DoctorReader(Protocol):
    """A cluster, read only.

    Every method raises ClusterUnavailable when the cluster does not answer, and AccessDenied, which is one, when
    whoever asks may not read this.
    """

    def nodes(self) -> Sequence[Node | Unreadable]:
        """Return every CTANode in the order of names."""

    def machines(self) -> Sequence[Machine]:
        """Return every Node in the order of names."""

    def release_workloads(self) -> Sequence[ReleaseWorkload]:
        """Return the chart's DaemonSets and Deployments, of every release."""

    def release_pods(self) -> Sequence[Pod]:
        """Return the pods of the chart's workloads."""

    def webhooks(self) -> Sequence[WebhookConfiguration]:
        """Return the chart's webhook configurations of both kinds, the mutating ones first."""

    def policies(self) -> Sequence[Policy]:
        """Return the chart's ValidatingAdmissionPolicies."""

    def policy_bindings(self) -> Sequence[PolicyBinding]:
        """Return their bindings."""

    def runtime_classes(self) -> Sequence[RuntimeClass]:
        """Return every RuntimeClass."""

    def tenant_pods(self, node: str | None) -> Sequence[Pod]:
        """Return the pods that have not ended, of one node or of all; those that ask for nothing of ours too."""

    def kubelet_gates(self, node: str) -> Mapping[str, bool]:
        """Return the feature gates that the kubelet of a node was told."""

    def rehearse_pod(self, resource: str, groups: int) -> Rehearsal:
        """Let the API server admit a pod that asks for groups, and store nothing."""
