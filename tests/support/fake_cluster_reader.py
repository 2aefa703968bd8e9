"""A cluster that holds what a test puts in it, for the commands of ``kubectl cta``; and builders of its objects."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cta_group_cli.errors import AccessDenied
from cta_group_cli.kinds import Kind
from cta_group_cli.objects import Controller, Event, Pod
from cta_group_cli.ports import Node, Part, Quota, Unreadable
from cta_group_core.workload import WorkloadStatus


@dataclass
class FakeClusterReader:
    """Answers from lists; see :class:`cta_group_cli.ports.ClusterReader`."""

    namespace: str = "default"
    all_nodes: list[Node | Unreadable] = field(default_factory=list)
    all_quotas: list[Quota | Unreadable] = field(default_factory=list)
    workloads: dict[tuple[str, str], WorkloadStatus] = field(default_factory=dict)
    """By namespace and name of the CTAWorkload."""
    all_pods: list[Pod] = field(default_factory=list)
    controllers: list[tuple[str, Controller]] = field(default_factory=list)
    """Each with its kind."""
    failures: list[Event] = field(default_factory=list)
    parts: dict[str, Part] = field(default_factory=dict)
    """By namespace."""
    refused: frozenset[str] = frozenset()
    """Methods that the API server refuses."""

    def _ask(self, method: str) -> None:
        if method in self.refused:
            raise AccessDenied(f"the cluster refuses {method}")

    def part(self, namespace: str) -> Part | None:
        """Return what the namespace has of its quota."""
        self._ask("part")
        return self.parts.get(namespace)

    def nodes(self) -> Sequence[Node | Unreadable]:
        """Return the nodes in the order of names, as an API server does."""
        self._ask("nodes")
        return sorted(self.all_nodes, key=lambda node: node.name)

    def quotas(self) -> Sequence[Quota | Unreadable]:
        """Return the quotas in the order of names."""
        self._ask("quotas")
        return sorted(self.all_quotas, key=lambda quota: quota.name)

    def workload(self, namespace: str, name: str) -> WorkloadStatus | None:
        """Return the status of the CTAWorkload of that name."""
        self._ask("workload")
        return self.workloads.get((namespace, name))

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return the pod of that name."""
        return next((pod for pod in self.pods(namespace) if pod.metadata.name == name), None)

    def pods(self, namespace: str) -> Sequence[Pod]:
        """Return the pods of the namespace."""
        self._ask("pods")
        return [pod for pod in self.all_pods if pod.metadata.namespace == namespace]

    def controller(self, kind: Kind, namespace: str, name: str) -> Controller | None:
        """Return the object of that kind and name, unless the kind is known by name alone."""
        self._ask("controller")
        found = (one for one in self._of_kind(kind.name, namespace) if one.metadata.name == name)
        return next(found, None) if kind.path else None

    def replica_sets(self, namespace: str) -> Sequence[Controller]:
        """Return the ReplicaSets of the namespace."""
        self._ask("replica_sets")
        return self._of_kind("ReplicaSet", namespace)

    def creation_failures(self, namespace: str) -> Sequence[Event]:
        """Return the failures; all are of the namespace that is asked for."""
        self._ask("creation_failures")
        return [event for event in self.failures if namespace]

    def _of_kind(self, kind: str, namespace: str) -> Sequence[Controller]:
        return [one for name, one in self.controllers if name == kind and one.metadata.namespace == namespace]


def metadata(name: str, *, owner: tuple[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """Return metadata as the API has it; the uid is the name; ``owner`` is kind and name of the controller."""
    owners = [{"kind": owner[0], "name": owner[1], "uid": owner[1], "controller": True}] if owner else []
    return {"name": name, "namespace": "team-a", "uid": name, "ownerReferences": owners, **more}


def pod_spec(groups: int | None = 32, **more: Any) -> dict[str, Any]:
    """Return the spec of a pod with one container that asks for groups."""
    limits = {} if groups is None else {"nvidia.com/cta-group": str(groups)}
    return {"containers": [{"name": "vllm", "resources": {"limits": limits, "requests": limits}}], **more}
