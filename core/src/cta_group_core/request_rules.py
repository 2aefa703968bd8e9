"""What the containers of a pod ask for, and which requests are refused: the rules of the chart's policies, as words.

The API server judges by CEL (``charts/cta-group/templates/policies/``); here the same rules judge without a cluster. A
test sends manifests through both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from cta_group_core.errors import InvalidText
from cta_group_core.names import ANNOTATION_GROUPS, ANNOTATION_MULTI_CONTAINER, WHOLE_GPU_RESOURCE
from cta_group_core.quantities import parse_count


class Role(Enum):
    """When a container runs."""

    REGULAR = "container"
    SIDECAR = "sidecar"
    """An init container that goes on beside the regular ones."""
    INITIAL = "init container"


@dataclass(frozen=True, slots=True)
class Asking:
    """One container and the resources that it names, as texts."""

    name: str
    role: Role
    limits: Mapping[str, str]
    requests: Mapping[str, str]

    def count(self, resource: str) -> int:
        """Return how much of an extended resource it asks for; 0 for what is no whole number."""
        return asked_count(self.limits, self.requests, resource)


def asked_text(limits: Mapping[str, str], requests: Mapping[str, str], resource: str) -> str:
    """Return what is asked of an extended resource, of which limit and request are the same; ``0`` for nothing."""
    return limits.get(resource) or requests.get(resource) or "0"


def asked_count(limits: Mapping[str, str], requests: Mapping[str, str], resource: str) -> int:
    """Return the number of it; 0 for a text that is no whole number, which the API server refuses."""
    try:
        return parse_count(asked_text(limits, requests, resource))
    except InvalidText:
        return 0


def refused_requests(
    containers: Sequence[Asking], annotations: Mapping[str, str], resource: str, *, annotated: str | None = None
) -> list[str]:
    """Return why the API server or a policy refuses the pod, each in a sentence; nothing when neither does.

    ``annotated``: the regular container that gets the groups which an annotation asks for, in place of whole GPUs.
    """
    holders = [one for one in containers if one.count(resource) or _is_given(one, annotated)]
    found = _mixed(containers, holders, resource, replaces=ANNOTATION_GROUPS in annotations)
    running = [one.name for one in holders if one.role is not Role.INITIAL]
    if len(running) > 1 and annotations.get(ANNOTATION_MULTI_CONTAINER) != "true":
        found.append(
            f"containers {', '.join(running)} ask for groups each and may land on several GPUs: let one ask, or say "
            f'{ANNOTATION_MULTI_CONTAINER}: "true"'
        )
    found += [
        f"init container {one.name} asks for groups; only a regular container may"
        for one in holders
        if one.role is Role.INITIAL
    ]
    for one in containers:
        if one.role is Role.REGULAR:
            found += [*_fractions(one, resource), *_unequal(one, resource)]
    return found


def _is_given(one: Asking, annotated: str | None) -> bool:
    return one.role is Role.REGULAR and one.name == annotated


def _mixed(containers: Sequence[Asking], holders: Sequence[Asking], resource: str, *, replaces: bool) -> list[str]:
    regular = any(one.role is Role.REGULAR for one in holders)
    with_gpus = [
        one.name
        for one in containers
        if one.role is Role.REGULAR and one.count(WHOLE_GPU_RESOURCE) and not (replaces and one in holders)
    ]
    if not (regular and with_gpus):
        return []
    return [f"{resource} and {WHOLE_GPU_RESOURCE} (container {with_gpus[0]}) are in one pod: ask for one of them"]


def _fractions(one: Asking, resource: str) -> list[str]:
    found = []
    for name in (resource, WHOLE_GPU_RESOURCE):
        try:
            parse_count(asked_text(one.limits, one.requests, name))
        except InvalidText as wrong:
            found.append(f"container {one.name} asks for {name}: {wrong}")
    return found


def _unequal(one: Asking, resource: str) -> list[str]:
    limit, request = one.limits.get(resource), one.requests.get(resource)
    if request is None or request == limit:
        return []
    told = f"container {one.name} requests {request} groups and its limit is {limit or 'not set'}"
    return [f"{told}: both must be the same"]
