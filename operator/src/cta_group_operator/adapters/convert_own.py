"""From wire structs to the values of ``ports``: CTANode and CTAWorkload. What cannot be read raises ValidationError."""

from typing import Final

from cta_group_core.ids import NodeName
from cta_group_core.nodes import NodeStatus
from cta_group_core.workload import WorkloadStatus
from cta_group_operator.adapters import wire_own
from cta_group_operator.adapters.convert import ref_of
from cta_group_operator.ports import CtaNodeView, WorkloadView
from cta_group_operator.resources import CTA_WORKLOADS

_SAYS_NOTHING: Final = (b"", b"null", b"{}")


def cta_node(found: wire_own.Told) -> CtaNodeView | None:
    """Return a CTANode, None while its plugin has not written a status."""
    text = bytes(found.status)
    if text in _SAYS_NOTHING:
        return None
    meta = found.metadata
    return CtaNodeView(NodeName(meta.name), meta.resource_version, NodeStatus.model_validate_json(text))


def workload(found: wire_own.Told) -> WorkloadView:
    """Return a CTAWorkload."""
    text, meta = bytes(found.status), found.metadata
    owners = meta.owner_references or ()
    return WorkloadView(
        ref=ref_of(CTA_WORKLOADS, meta),
        resource_version=meta.resource_version,
        owner_uid=owners[0].uid if owners else "",
        status=None if text in _SAYS_NOTHING else WorkloadStatus.model_validate_json(text),
    )
