"""How many groups each container of a pod asks for, and the annotation by which a template asks that cannot."""

from collections.abc import Sequence
from dataclasses import dataclass

from cta_group_core.errors import InvalidText
from cta_group_core.names import ANNOTATION_CONTAINER, ANNOTATION_GROUPS
from cta_group_core.quantities import parse_count
from cta_group_operator.admission.patch import PodPatch
from cta_group_operator.admission.pod import Container, Pod, Requirements

WHOLE_GPU_RESOURCE = "nvidia.com/gpu"
"""What the annotation replaces: the resource of NVIDIA's own plugin."""
_MOST_DIGITS = 9


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
    return any(groups_of(one, resource) > 0 for one in (*pod.containers, *(pod.spec.init_containers or ())))


def groups_of(container: Container, resource: str) -> int:
    """Return the groups that a container asks for."""
    resources = container.resources or Requirements()
    text = (resources.limits or {}).get(resource) or (resources.requests or {}).get(resource) or "0"
    try:
        return parse_count(text)
    except InvalidText:
        return 0


def apply_annotation(pod: Pod, resource: str, patch: PodPatch) -> list[str]:
    """Turn the annotation into a request of one container, in the patch and in ``pod``; return warnings."""
    text = pod.annotations.get(ANNOTATION_GROUPS)
    if text is None:
        return []
    if asks(pod, resource):
        return []  # the pod asks by itself, perhaps because of an earlier call of ours
    if not (len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal() and int(text) > 0):
        return [f"annotation {ANNOTATION_GROUPS}: {text!r} is not a whole number above 0; nothing was changed"]
    target = _target(pod)
    if target is None:
        names = ", ".join(one.name for one in pod.containers)
        return [f"annotation {ANNOTATION_GROUPS}: which of {names} gets the groups? Say {ANNOTATION_CONTAINER}"]
    container = pod.containers[target]
    if container.resources is None:
        patch.container(target, "resources", {})
    container.resources = _with_groups(container.resources or Requirements(), resource, text)
    patch.container(target, "resources/limits", container.resources.limits)
    patch.container(target, "resources/requests", container.resources.requests)
    return []


def _target(pod: Pod) -> int | None:
    """Return the index of the container that the groups are for: the named one, the one with GPUs, the only one."""
    named = pod.annotations.get(ANNOTATION_CONTAINER)
    if named is not None:
        return _only([index for index, one in enumerate(pod.containers) if one.name == named])
    with_gpus = [index for index, one in enumerate(pod.containers) if groups_of(one, WHOLE_GPU_RESOURCE) > 0]
    return _only(with_gpus or list(range(len(pod.containers))))


def _only(indexes: Sequence[int]) -> int | None:
    return indexes[0] if len(indexes) == 1 else None


def _with_groups(resources: Requirements, resource: str, groups: str) -> Requirements:
    def changed(quantities: dict[str, str] | None) -> dict[str, str]:
        kept = {name: text for name, text in (quantities or {}).items() if name != WHOLE_GPU_RESOURCE}
        return {**kept, resource: groups}

    return Requirements(requests=changed(resources.requests), limits=changed(resources.limits))
