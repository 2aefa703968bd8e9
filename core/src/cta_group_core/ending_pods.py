"""Pods that are being deleted: what they hold or are charged for comes back when they are gone."""

from collections.abc import Sequence
from dataclasses import dataclass

_PODS_TOLD = 3


@dataclass(frozen=True, slots=True)
class EndingPod:
    """A pod that is being deleted and is charged, and holds its groups, until it is gone."""

    name: str
    groups: int
    until: str
    """When it is ended at the latest, RFC 3339."""


def coming_back(ending: Sequence[EndingPod]) -> str:
    """Say which groups come back from which pods, and by when; empty when none are ending."""
    if not ending:
        return ""
    first = sorted(ending, key=lambda pod: (pod.until, pod.name))
    told = ", ".join(f"{pod.groups} when pod {pod.name} has ended, by {pod.until}" for pod in first[:_PODS_TOLD])
    more = f" and {len(first) - _PODS_TOLD} more" if len(first) > _PODS_TOLD else ""
    return f"groups come back: {told}{more}"
