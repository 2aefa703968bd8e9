"""What the commands read of a cluster, as one small interface."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cta_group_cli.kinds import Kind
from cta_group_cli.objects import Controller, Event, Pod
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_core.nodes import NodeStatus
from cta_group_core.quota import NamespaceShare, QuotaSpec, QuotaStatus
from cta_group_core.workload import WorkloadStatus


@dataclass(frozen=True, slots=True)
class Node:
    """A CTANode."""

    name: str
    status: NodeStatus


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object of ours that another version wrote in a form that this one does not read."""

    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class Quota:
    """A CTAQuota."""

    name: str
    spec: QuotaSpec
    status: QuotaStatus


@dataclass(frozen=True, slots=True)
class Part:
    """What one namespace has of a CTAQuota, by its ResourceQuota: for whoever may not read CTAQuotas."""

    quota: str
    """Name of the CTAQuota."""
    resource: str
    """What it limits."""
    share: NamespaceShare


def resource_of(nodes: Iterable[Node | Unreadable], otherwise: str = DEFAULT_RESOURCE_NAME) -> str:
    """Return the resource that the nodes offer, which the chart can give another name; without nodes ``otherwise``."""
    return next((node.status.resource_name for node in nodes if isinstance(node, Node)), otherwise)


class ClusterReader(Protocol):
    """A cluster, read only.

    Each method raises ClusterUnavailable when the cluster does not answer, AccessDenied when it refuses.
    """

    @property
    def namespace(self) -> str:
        """Namespace to use when none is said."""

    def nodes(self) -> Sequence[Node | Unreadable]:
        """Return every CTANode in the order of names."""

    def quotas(self) -> Sequence[Quota | Unreadable]:
        """Return every CTAQuota in the order of names."""

    def part(self, namespace: str) -> Part | None:
        """Return what a namespace has of its CTAQuota; None where it has none."""

    def workload(self, namespace: str, name: str) -> WorkloadStatus | None:
        """Return the status of a CTAWorkload; None while there is none, or nothing in it."""

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod."""

    def pods(self, namespace: str) -> Sequence[Pod]:
        """Return every pod of a namespace."""

    def controller(self, kind: Kind, namespace: str, name: str) -> Controller | None:
        """Return an object that makes pods; None when it does not exist, or its kind is known by name alone."""

    def replica_sets(self, namespace: str) -> Sequence[Controller]:
        """Return every ReplicaSet of a namespace."""

    def creation_failures(self, namespace: str) -> Sequence[Event]:
        """Return the events of a namespace that tell of pods that could not be created."""
