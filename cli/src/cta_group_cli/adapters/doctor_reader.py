"""A cluster as ``doctor`` reads it: many kinds, each a little."""

import time
from collections.abc import Mapping, Sequence

from cta_group_cli.adapters.kubernetes_reader import KubernetesReader
from cta_group_cli.adapters.rest import Model, Rest, parsed
from cta_group_cli.doctor_facts import (
    Machine,
    Policy,
    PolicyBinding,
    Rehearsal,
    ReleaseWorkload,
    RuntimeClass,
    WebhookConfiguration,
)
from cta_group_cli.objects import Pod
from cta_group_cli.ports import Node, Unreadable
from cta_group_core.names import LABEL_COMPONENT, LABEL_PART_OF, PART_OF

_ADMISSION = "apis/admissionregistration.k8s.io/v1"
_OF_THE_CHART = f"{LABEL_PART_OF}={PART_OF}"
_LIVING = "status.phase!=Succeeded,status.phase!=Failed"
_REHEARSED_IN = "default"


class KubernetesDoctorReader:
    """Implements :class:`cta_group_cli.doctor_facts.DoctorReader`."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def nodes(self) -> Sequence[Node | Unreadable]:
        """See the interface."""
        return KubernetesReader(self._rest).nodes()

    def machines(self) -> Sequence[Machine]:
        """See the interface."""
        return self._list(Machine, "api/v1/nodes")

    def release_workloads(self) -> Sequence[ReleaseWorkload]:
        """See the interface."""
        kinds = ("daemonsets", "deployments")
        return [one for kind in kinds for one in self._of_the_chart(ReleaseWorkload, f"apis/apps/v1/{kind}")]

    def release_pods(self) -> Sequence[Pod]:
        """See the interface."""
        return self._of_the_chart(Pod, "api/v1/pods")

    def webhooks(self) -> Sequence[WebhookConfiguration]:
        """See the interface."""
        mutating = self._of_the_chart(WebhookConfiguration, f"{_ADMISSION}/mutatingwebhookconfigurations")
        refusing = self._of_the_chart(WebhookConfiguration, f"{_ADMISSION}/validatingwebhookconfigurations")
        return [*mutating, *(one.model_copy(update={"mutates": False}) for one in refusing)]

    def policies(self) -> Sequence[Policy]:
        """See the interface."""
        return self._of_the_chart(Policy, f"{_ADMISSION}/validatingadmissionpolicies")

    def policy_bindings(self) -> Sequence[PolicyBinding]:
        """See the interface."""
        return self._of_the_chart(PolicyBinding, f"{_ADMISSION}/validatingadmissionpolicybindings")

    def runtime_classes(self) -> Sequence[RuntimeClass]:
        """See the interface."""
        return self._list(RuntimeClass, "apis/node.k8s.io/v1/runtimeclasses")

    def tenant_pods(self, node: str | None) -> Sequence[Pod]:
        """See the interface."""
        selector = _LIVING if node is None else f"{_LIVING},spec.nodeName={node}"
        return self._list(Pod, "api/v1/pods", fieldSelector=selector)

    def kubelet_gates(self, node: str) -> Mapping[str, bool]:
        """See the interface."""
        configuration = (self._rest.get(f"api/v1/nodes/{node}/proxy/configz") or {}).get("kubeletconfig", {})
        gates: Mapping[str, bool] = configuration.get("featureGates") or {}
        return gates

    def rehearse_pod(self, resource: str, groups: int) -> Rehearsal:
        """See the interface."""
        container = {"name": "rehearsal", "image": "rehearsal", "resources": {"limits": {resource: str(groups)}}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "cta-group-doctor-", "labels": {LABEL_COMPONENT: "doctor"}},
            "spec": {"containers": [container]},
        }
        started = time.monotonic()
        made = self._rest.rehearse(f"api/v1/namespaces/{_REHEARSED_IN}/pods", pod)
        return Rehearsal(made["metadata"].get("labels", {}), time.monotonic() - started)

    def _of_the_chart(self, model: type[Model], path: str) -> Sequence[Model]:
        return self._list(model, path, labelSelector=_OF_THE_CHART)

    def _list(self, model: type[Model], path: str, **query: str) -> Sequence[Model]:
        return [parsed(model, item, path) for item in self._rest.items(path, path.rpartition("/")[2], **query)]
