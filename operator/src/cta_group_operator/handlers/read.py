"""CTAQuota out of the API server's JSON."""

from collections.abc import Mapping
from typing import Any

from cta_group_core.quota import QuotaSpec, QuotaStatus
from cta_group_operator.ports import ObjectRef, QuotaView
from cta_group_operator.resources import CTA_QUOTAS

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
