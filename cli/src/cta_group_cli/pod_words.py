"""What a pod carries that explains it: its gates, its conditions, and what admission changed in its arguments."""

from collections.abc import Iterator, Sequence

from cta_group_cli.objects import Container, Pod
from cta_group_core.annotations import unreadable
from cta_group_core.names import (
    ANNOTATION_ALIGN,
    ANNOTATION_ALIGNMENT,
    ANNOTATION_ALIGNMENT_ADVICE,
    ANNOTATION_RUNTIME_ADVICE,
)
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.vllm.claims import believed
from cta_group_core.vllm.detect import ContainerFacts
from cta_group_core.vllm.surroundings import Surroundings, resolve_variables


def pod_remarks(pod: Pod) -> Sequence[str]:
    """Return sentences about the pod's gates, node and changed arguments."""
    remarks = []
    if gates := ", ".join(gate.name for gate in pod.spec.scheduling_gates):
        remarks.append(f"Scheduling gates that hold it: {gates}.")
    if pod.spec.node_name:
        remarks.append(f"It is on node {pod.spec.node_name}.")
    if until := pod.metadata.deletion_timestamp:
        remarks.append(f"It is being deleted (grace until {until}).")
    return [*remarks, *admission_remarks(pod)]


def admission_remarks(pod: Pod) -> Sequence[str]:
    """Return what admission changed in the pod, or why it did not, and which annotations are ignored."""
    annotations = pod.metadata.annotations
    told = list(_changes(annotations.get(ANNOTATION_ALIGNMENT, ""), pod))
    if advice := annotations.get(ANNOTATION_ALIGNMENT_ADVICE):
        told.append(f"vLLM's arguments were not changed: {advice}.")
    elif annotations.get(ANNOTATION_ALIGN) == "off":
        told.append(f"vLLM's arguments were not looked at: the pod has the annotation {ANNOTATION_ALIGN}: off.")
    if (advice := annotations.get(ANNOTATION_RUNTIME_ADVICE)) and not pod.spec.runtime_class_name:
        told.append(f"It has no runtime class: {advice}.")
    return [*told, *(f"Ignored: {one}." for one in unreadable(annotations).values())]


def _changes(annotation: str, pod: Pod) -> Iterator[str]:
    """Yield what was changed; anybody who may change the pod may have written what its arguments do not say."""
    changes = believed(annotation, map(_facts, pod.spec.containers))
    for one in changes:
        yield f"Argument changed at admission: {one.flag} from {one.before or 'unset'} to {one.after} ({one.why})."
    if annotation and not changes:
        yield f"Its annotation {ANNOTATION_ALIGNMENT} is not believed: the arguments do not say the same."


def _facts(container: Container) -> ContainerFacts:
    known = resolve_variables((one.name, one.value if one.value_from is None else None) for one in container.env)
    return ContainerFacts(
        name=container.name,
        image=container.image,
        command=container.command,
        args=container.args,
        surroundings=Surroundings(known, more_variables=bool(container.env_from)),
    )


def pod_conditions(pod: Pod) -> Sequence[Condition]:
    """Return those of the pod's own conditions that do not hold."""
    return [
        Condition(type=one.type, status=ConditionStatus.FALSE, reason=one.reason or "Unknown", message=one.message)
        for one in pod.status.conditions
        if one.status == ConditionStatus.FALSE
    ]
