"""From wire structs to the values of ``ports``: nodes, namespaces and ResourceQuotas."""

from collections.abc import Mapping

import msgspec

from cta_group_core.errors import InvalidText
from cta_group_core.ids import NodeName
from cta_group_core.names import LABEL_QUOTA
from cta_group_core.quantities import parse_count
from cta_group_core.quota import quota_key, unenforced_keys
from cta_group_core.scheduling import NodeFacts, Taint
from cta_group_operator.adapters import wire_cluster
from cta_group_operator.adapters.convert_load import amount
from cta_group_operator.ports import AutoscalerView, Json, LimitView, NamespaceView, NodeView, ObjectRef
from cta_group_operator.resources import AUTOSCALERS, RESOURCE_QUOTAS


class NodeConverter:
    """Converts nodes, with what they advertise of one resource."""

    def __init__(self, resource_name: str) -> None:
        self._resource_name = resource_name

    def node(self, found: wire_cluster.Node) -> NodeView:
        """Return a node."""
        allocatable = (found.status.allocatable if found.status else None) or {}
        spec = found.spec or wire_cluster.NodeSpec()
        facts = NodeFacts(
            name=NodeName(found.metadata.name),
            labels=found.metadata.labels or {},
            taints=tuple(Taint(one.key, one.value or "", one.effect) for one in spec.taints or ()),
            unschedulable=bool(spec.unschedulable),
            cpu_milli=int(amount(allocatable, "cpu") * 1000),
            memory_bytes=int(amount(allocatable, "memory")),
            pods=int(amount(allocatable, "pods")),
            groups=int(amount(allocatable, self._resource_name)),
        )
        return NodeView(facts, found.metadata.resource_version, found.metadata.uid)


def namespace(found: wire_cluster.Namespace) -> NamespaceView:
    """Return a namespace."""
    meta = found.metadata
    return NamespaceView(meta.name, meta.resource_version, meta.labels or {}, meta.deletion_timestamp is not None)


def autoscaler(found: wire_cluster.Autoscaler) -> AutoscalerView | None:
    """Return an autoscaler; None while it has no spec."""
    if found.spec is None:
        return None
    meta, target = found.metadata, found.spec.scale_target_ref
    return AutoscalerView(
        ref=ObjectRef(AUTOSCALERS.group_version, AUTOSCALERS.kind, meta.namespace, meta.name, meta.uid),
        resource_version=meta.resource_version,
        target_kind=target.kind,
        target_name=target.name,
        max_replicas=found.spec.max_replicas,
    )


class LimitConverter:
    """Converts ResourceQuotas that say something about one resource, and those that belong to a CTAQuota."""

    def __init__(self, resource_name: str) -> None:
        self._key = quota_key(resource_name)
        self._ignored = unenforced_keys(resource_name)

    def read(self, body: Json) -> LimitView | None:
        """As :meth:`limit`, from the API server's JSON; raises msgspec's ValidationError, a ValueError."""
        return self.limit(msgspec.convert(body, wire_cluster.ResourceQuota))

    def limit(self, found: wire_cluster.ResourceQuota) -> LimitView | None:
        """Return the ResourceQuota, None when it has nothing to do with groups."""
        spec_hard = (found.spec.hard if found.spec else None) or {}
        status = found.status or wire_cluster.ResourceQuotaStatus()
        meta = found.metadata
        owner = (meta.labels or {}).get(LABEL_QUOTA)
        ignored = tuple(key for key in self._ignored if key in spec_hard)
        if owner is None and self._key not in spec_hard and not ignored:
            return None
        return LimitView(
            ref=ObjectRef(RESOURCE_QUOTAS.group_version, RESOURCE_QUOTAS.kind, meta.namespace, meta.name, meta.uid),
            resource_version=meta.resource_version,
            quota=owner,
            hard=_count(spec_hard, self._key),
            enforced=_count(status.hard or {}, self._key),
            used=_count(status.used or {}, self._key),
            ignored_keys=ignored,
        )


def _count(amounts: Mapping[str, str], key: str) -> int | None:
    try:
        return parse_count(amounts[key]) if key in amounts else None
    except InvalidText:
        return None
