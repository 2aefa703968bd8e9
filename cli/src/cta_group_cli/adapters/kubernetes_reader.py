"""A cluster as ``top``, ``explain`` and ``quota`` read it."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from pydantic import Field, ValidationError

from cta_group_cli.adapters.connection import Json
from cta_group_cli.adapters.rest import Model, Rest, first_problem, parsed
from cta_group_cli.kinds import POD, REPLICA_SET, Kind
from cta_group_cli.objects import Controller, Event, Metadata, Pod
from cta_group_cli.ports import Node, Part, Quota, Unreadable
from cta_group_core.errors import InvalidText
from cta_group_core.names import API_GROUP_VERSION, LABEL_QUOTA, QUOTA_OBJECT_NAME
from cta_group_core.nodes import ApiModel, NodeStatus
from cta_group_core.quantities import parse_count
from cta_group_core.quota import NamespaceShare, QuotaSpec, QuotaStatus, quota_key
from cta_group_core.workload import WorkloadStatus

Member = TypeVar("Member", Node, Quota)
_REQUESTS: Final = quota_key("")


class _Amounts(ApiModel):
    """What a ResourceQuota allows, or what is charged, by key, as quantities."""

    hard: dict[str, str] = Field(default_factory=dict)
    used: dict[str, str] = Field(default_factory=dict)


class _ResourceQuota(ApiModel):
    """A ResourceQuota. What is in force is in its status."""

    metadata: Metadata
    status: _Amounts = _Amounts()


class KubernetesReader:
    """Reads a cluster; see :class:`cta_group_cli.ports.ClusterReader`."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    @property
    def namespace(self) -> str:
        """See the interface."""
        return self._rest.namespace

    def nodes(self) -> Sequence[Node | Unreadable]:
        """See the interface."""
        return [
            _ours(item, _node)
            for item in self._rest.items(f"apis/{API_GROUP_VERSION}/ctanodes", "CTANodes")
            if item.get("status")
        ]

    def quotas(self) -> Sequence[Quota | Unreadable]:
        """See the interface."""
        items = self._rest.items(f"apis/{API_GROUP_VERSION}/ctaquotas", "CTAQuotas")
        return [_ours(item, _quota) for item in items]

    def part(self, namespace: str) -> Part | None:
        """See the interface."""
        path = f"api/v1/namespaces/{namespace}/resourcequotas/{QUOTA_OBJECT_NAME}"
        found = self._rest.get(path)
        return _part(parsed(_ResourceQuota, found, path), namespace) if found else None

    def workload(self, namespace: str, name: str) -> WorkloadStatus | None:
        """See the interface."""
        path = f"apis/{API_GROUP_VERSION}/namespaces/{namespace}/ctaworkloads/{name}"
        found = self._rest.get(path)
        status = (found or {}).get("status")
        return parsed(WorkloadStatus, status, path) if status else None

    def pod(self, namespace: str, name: str) -> Pod | None:
        """See the interface."""
        return self._object(Pod, POD, namespace, name)

    def pods(self, namespace: str) -> Sequence[Pod]:
        """See the interface."""
        path = f"api/v1/namespaces/{namespace}/pods"
        return [parsed(Pod, item, path) for item in self._rest.items(path, "pods")]

    def controller(self, kind: Kind, namespace: str, name: str) -> Controller | None:
        """See the interface."""
        return self._object(Controller, kind, namespace, name)

    def replica_sets(self, namespace: str) -> Sequence[Controller]:
        """See the interface."""
        path = f"{REPLICA_SET.path}/namespaces/{namespace}/{REPLICA_SET.plural}"
        return [parsed(Controller, item, path) for item in self._rest.items(path, "ReplicaSets")]

    def creation_failures(self, namespace: str) -> Sequence[Event]:
        """See the interface."""
        path = f"api/v1/namespaces/{namespace}/events"
        failed = self._rest.items(path, "events", fieldSelector="reason=FailedCreate")
        return [parsed(Event, item, path) for item in failed]

    def _object(self, model: type[Model], kind: Kind, namespace: str, name: str) -> Model | None:
        if kind.path is None:
            return None
        path = f"{kind.path}/namespaces/{namespace}/{kind.plural}/{name}"
        found = self._rest.get(path)
        return parsed(model, found, path) if found else None


def _node(item: Json) -> Node:
    return Node(item["metadata"]["name"], NodeStatus.model_validate(item["status"]))


def _quota(item: Json) -> Quota:
    status = QuotaStatus.model_validate(item.get("status", {}))
    return Quota(item["metadata"]["name"], QuotaSpec.model_validate(item.get("spec")), status)


def _part(limit: _ResourceQuota, namespace: str) -> Part | None:
    """Return what a ResourceQuota says; None of one that people made, or that nobody has counted."""
    key = next((key for key in limit.status.hard if key.startswith(_REQUESTS)), "")
    quota = limit.metadata.labels.get(LABEL_QUOTA)
    try:
        hard, used = (parse_count(amounts.get(key, "")) for amounts in (limit.status.hard, limit.status.used))
    except InvalidText:
        return None
    return (
        Part(quota, key.removeprefix(_REQUESTS), NamespaceShare(name=namespace, hard=hard, used=used))
        if quota
        else None
    )


def _ours(item: Json, parse: Callable[[Json], Member]) -> Member | Unreadable:
    """Parse one of many objects: one that another version wrote must not hide the rest."""
    try:
        return parse(item)
    except ValidationError as other_form:
        return Unreadable(item["metadata"]["name"], first_problem(other_form))
