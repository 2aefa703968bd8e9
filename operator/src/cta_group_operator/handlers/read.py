"""The project's own kinds out of the API server's JSON; one that cannot be read raises pydantic's ValidationError."""

from collections.abc import Mapping
from typing import Any

from cta_group_core.ids import NodeName
from cta_group_core.nodes import NodeStatus
from cta_group_core.quota import QuotaSpec, QuotaStatus
from cta_group_core.workload import WorkloadStatus
from cta_group_operator.ports import CtaNodeView, ObjectRef, QuotaView, WorkloadView
from cta_group_operator.resources import CTA_QUOTAS, CTA_WORKLOADS

Body = Mapping[str, Any]


def read_quota(body: Body) -> QuotaView:
    """Return a CTAQuota; raises pydantic's ValidationError naming the field of an object that cannot be read."""
    meta = body["metadata"]
    return QuotaView(
        ref=ObjectRef(CTA_QUOTAS.group_version, CTA_QUOTAS.kind, "", meta["name"], meta["uid"]),
        resource_version=meta["resourceVersion"],
        created=meta.get("creationTimestamp", ""),
        generation=meta.get("generation", 0),
        spec=QuotaSpec.model_validate(body.get("spec", {})),
        status=QuotaStatus.model_validate(body.get("status") or {}),
    )


def read_cta_node(body: Body) -> CtaNodeView | None:
    """Return a CTANode, None while its plugin has not written a status."""
    meta = body["metadata"]
    if not body.get("status"):
        return None
    return CtaNodeView(NodeName(meta["name"]), meta["resourceVersion"], NodeStatus.model_validate(body["status"]))


def read_workload(body: Body) -> WorkloadView:
    """Return a CTAWorkload."""
    meta = body["metadata"]
    owners = meta.get("ownerReferences") or [{}]
    status = body.get("status")
    return WorkloadView(
        ref=ObjectRef(CTA_WORKLOADS.group_version, CTA_WORKLOADS.kind, meta["namespace"], meta["name"], meta["uid"]),
        resource_version=meta["resourceVersion"],
        owner_uid=owners[0].get("uid", ""),
        status=WorkloadStatus.model_validate(status) if status else None,
    )
