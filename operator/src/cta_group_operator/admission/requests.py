"""How many groups each container of a pod asks for, and the annotation by which a template asks that cannot."""

from dataclasses import dataclass

from cta_group_core.annotated_groups import annotated_container, annotated_groups
from cta_group_core.errors import InvalidText
from cta_group_core.names import ANNOTATION_CONTAINER, ANNOTATION_GROUPS, WHOLE_GPU_RESOURCE
from cta_group_core.request_rules import asked_count
from cta_group_operator.admission.patch import PodPatch
from cta_group_operator.admission.pod import Container, Pod, Requirements


@dataclass(frozen=True, slots=True)
class Asked:
    """One regular container that asks for groups."""

    index: int
    container: Container
    groups: int


def asked_by(pod: Pod, resource: str) -> list[Asked]:
    """Return the regular containers that ask for the resource.

    A size that is no whole number asks for nothing here: the API server and the policies refuse it.
    """
    found = (Asked(index, one, groups_of(one, resource)) for index, one in enumerate(pod.containers))
    return [one for one in found if one.groups > 0]


def asks(pod: Pod, resource: str) -> bool:
    """Tell whether any container of the pod asks for the resource, init containers too."""
    return bool(every_request(pod, resource))


def every_request(pod: Pod, resource: str) -> list[int]:
    """Return the groups of each container that asks, sidecars and other init containers too."""
    found = (groups_of(one, resource) for one in (*pod.containers, *(pod.spec.init_containers or ())))
    return [groups for groups in found if groups > 0]


def groups_of(container: Container, resource: str) -> int:
    """Return the groups that a container asks for."""
    resources = container.resources or Requirements()
    return asked_count(resources.limits or {}, resources.requests or {}, resource)


def apply_annotation(pod: Pod, resource: str, patch: PodPatch) -> list[str]:
    """Turn the annotation into a request of one container, in the patch and in ``pod``; return warnings."""
    text = pod.annotations.get(ANNOTATION_GROUPS)
    if text is None:
        return []
    if asks(pod, resource):
        return []  # the pod asks by itself, perhaps because of an earlier call of ours
    try:
        annotated_groups(text)
    except InvalidText as wrong:
        return [f"{wrong}; nothing was changed"]
    with_gpus = [index for index, one in enumerate(pod.containers) if groups_of(one, WHOLE_GPU_RESOURCE) > 0]
    names = [one.name for one in pod.containers]
    try:
        target = annotated_container(names, pod.annotations.get(ANNOTATION_CONTAINER), with_gpus)
    except InvalidText as unclear:
        return [str(unclear)]
    container = pod.containers[target]
    if container.resources is None:
        patch.container(target, "resources", {})
    container.resources = _with_groups(container.resources or Requirements(), resource, text)
    patch.container(target, "resources/limits", container.resources.limits)
    patch.container(target, "resources/requests", container.resources.requests)
    return []


def _with_groups(resources: Requirements, resource: str, groups: str) -> Requirements:
    def changed(quantities: dict[str, str] | None) -> dict[str, str]:
        kept = {name: text for name, text in (quantities or {}).items() if name != WHOLE_GPU_RESOURCE}
        return {**kept, resource: groups}

    return Requirements(requests=changed(resources.requests), limits=changed(resources.limits))
