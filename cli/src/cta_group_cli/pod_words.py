"""What a pod carries that explains it: its gates, its conditions, and what admission changed in its arguments."""

import json
from collections.abc import Iterator, Sequence

from cta_group_cli.objects import Pod
from cta_group_core.names import (
    ANNOTATION_ALIGN,
    ANNOTATION_ALIGNMENT,
    ANNOTATION_ALIGNMENT_ADVICE,
    ANNOTATION_RUNTIME_ADVICE,
)
from cta_group_core.nodes import Condition, ConditionStatus


def pod_remarks(pod: Pod) -> Sequence[str]:
    """Return sentences about the pod's gates, node and changed arguments."""
    remarks = []
    if gates := ", ".join(gate.name for gate in pod.spec.scheduling_gates):
        remarks.append(f"Scheduling gates that hold it: {gates}.")
    if pod.spec.node_name:
        remarks.append(f"It is on node {pod.spec.node_name}.")
    return [*remarks, *admission_remarks(pod)]


def admission_remarks(pod: Pod) -> Sequence[str]:
    """Return sentences about what admission changed in the pod, or would have and why it did not."""
    annotations = pod.metadata.annotations
    told = list(_changes(annotations.get(ANNOTATION_ALIGNMENT, "")))
    if advice := annotations.get(ANNOTATION_ALIGNMENT_ADVICE):
        told.append(f"vLLM's arguments were not changed: {advice}.")
    elif annotations.get(ANNOTATION_ALIGN) == "off":
        told.append(f"vLLM's arguments were not looked at: the pod has the annotation {ANNOTATION_ALIGN}: off.")
    if (advice := annotations.get(ANNOTATION_RUNTIME_ADVICE)) and not pod.spec.runtime_class_name:
        told.append(f"It has no runtime class: {advice}.")
    return told


def _changes(annotation: str) -> Iterator[str]:
    """Yield what was changed; an annotation of another form is shown as it is, since it is for people."""
    try:
        changes = [(one["flag"], one["from"], one["to"], one["why"]) for one in json.loads(annotation or "[]")]
    except (ValueError, TypeError, KeyError):
        yield f"Arguments changed at admission: {annotation}"
        return
    for flag, before, after, why in changes:
        yield f"Argument changed at admission: {flag} from {before or 'unset'} to {after} ({why})."


def pod_conditions(pod: Pod) -> Sequence[Condition]:
    """Return those of the pod's own conditions that do not hold."""
    return [
        Condition(type=one.type, status=ConditionStatus.FALSE, reason=one.reason or "Unknown", message=one.message)
        for one in pod.status.conditions
        if one.status == ConditionStatus.FALSE
    ]
