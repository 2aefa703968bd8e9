"""The one JSON patch that releases a pod: nodes in, gate off, or nothing at all.

Affinity can only be added while the pod is gated and is frozen afterwards. A field requirement on ``metadata.name``
takes exactly one value, so each candidate is a term of its own; where the pod has terms already their number is fixed,
and each gets the best node. The resourceVersion is tested, since the patch's paths were made from that version.
"""

from typing import Any, Final

from cta_group_core.ids import NodeName
from cta_group_core.names import ANNOTATION_PLACEMENT, GATE_PLACEMENT
from cta_group_operator.ports import PodView

Operation = dict[str, Any]

_NODE_AFFINITY: Final = "/spec/affinity/nodeAffinity"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHTS: Final = (100, 50)
"""For the best node and the next; the third is allowed, not preferred."""


def nodes_to_pin(pod: PodView, candidates: tuple[NodeName, ...]) -> tuple[NodeName, ...]:
    """Return the candidates that the pod's affinity can express."""
    return candidates[:1] if pod.shape.term_fields else candidates


def release_patch(pod: PodView, nodes: tuple[NodeName, ...], *, told: str = "") -> list[Operation]:
    """Return the patch; without ``nodes`` the pod is released to wherever the scheduler likes.

    ``told``: what the annotation says instead of the nodes.
    """
    told = told or ",".join(nodes)
    gate = f"/spec/schedulingGates/{pod.gates.index(GATE_PLACEMENT)}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod.ref.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": pod.resource_version},
        {"op": "test", "path": f"{gate}/name", "value": GATE_PLACEMENT},
        *(_affinity(pod, nodes) if nodes else ()),
        *(_annotation(pod, told) if told else ()),
        {"op": "remove", "path": gate},
    ]


def _affinity(pod: PodView, nodes: tuple[NodeName, ...]) -> list[Operation]:
    preferred = _preferences(nodes)
    if pod.shape.term_fields:
        # An empty term holds for no node, and the API server lets nobody add to it.
        terms = enumerate(pod.shape.term_fields)
        return [_into_term(place, has, nodes[0]) for place, has in terms if has is not None]
    required = {"nodeSelectorTerms": [{"matchFields": [_is_named(node)]} for node in nodes]}
    if not pod.shape.has_node_affinity:
        affinity = {_REQUIRED: required, **({_PREFERRED: preferred} if preferred else {})}
        if pod.shape.has_affinity:
            return [_add(_NODE_AFFINITY, affinity)]
        return [_add("/spec/affinity", {"nodeAffinity": affinity})]
    operations = [_add(f"{_NODE_AFFINITY}/{_REQUIRED}", required)]
    if pod.shape.has_preferred:
        operations += [_add(f"{_NODE_AFFINITY}/{_PREFERRED}/-", one) for one in preferred]
    elif preferred:
        operations.append(_add(f"{_NODE_AFFINITY}/{_PREFERRED}", preferred))
    return operations


def _into_term(place: int, has_fields: bool, node: NodeName) -> Operation:  # noqa: FBT001 - a pair out of the shape
    fields = f"{_NODE_AFFINITY}/{_REQUIRED}/nodeSelectorTerms/{place}/matchFields"
    return _add(f"{fields}/-", _is_named(node)) if has_fields else _add(fields, [_is_named(node)])


def _preferences(nodes: tuple[NodeName, ...]) -> list[Operation]:
    if len(nodes) == 1:
        return []
    return [
        {"weight": weight, "preference": {"matchFields": [_is_named(node)]}}
        for weight, node in zip(_WEIGHTS, nodes, strict=False)
    ]


def _annotation(pod: PodView, told: str) -> list[Operation]:
    if not pod.shape.has_annotations:
        return [_add("/metadata/annotations", {ANNOTATION_PLACEMENT: told})]
    return [_add(f"/metadata/annotations/{ANNOTATION_PLACEMENT.replace('/', '~1')}", told)]


def _is_named(node: NodeName) -> Operation:
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def _add(path: str, value: Any) -> Operation:
    return {"op": "add", "path": path, "value": value}
