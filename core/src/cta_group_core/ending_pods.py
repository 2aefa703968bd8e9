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
    lost_node: str = ""
    """Its node, where Kubernetes does not hear of that: its end is not known then, and its quota comes back later."""


def coming_back(ending: Sequence[EndingPod]) -> str:
    """Say which groups come back from which pods, and by when; empty when none are ending."""
    if not ending:
        return ""
    first = sorted(ending, key=lambda pod: (pod.until, pod.name))
    told = ", ".join(map(_words, first[:_PODS_TOLD]))
    more = f" and {len(first) - _PODS_TOLD} more" if len(first) > _PODS_TOLD else ""
    return f"groups come back: {told}{more}"


def still_ending(ending: Sequence[EndingPod]) -> str:
    """Say which pods of a workload are being deleted, and what their end waits for."""
    first = sorted(ending, key=lambda pod: (pod.until, pod.name))
    told = ", ".join(map(_end_words, first[:_PODS_TOLD]))
    more = f" and {len(first) - _PODS_TOLD} more" if len(first) > _PODS_TOLD else ""
    return f"being deleted: {told}{more}"


def _end_words(pod: EndingPod) -> str:
    if pod.lost_node:
        return (
            f"{pod.name}, whose node {pod.lost_node} is not heard of: it ends when that is back, or when its Node "
            "object is deleted"
        )
    return f"{pod.name} (grace until {pod.until})"


def _words(pod: EndingPod) -> str:
    if pod.lost_node:
        # Of the quota alone, by kube-controller-manager: twice the grace, and a count every five minutes by default.
        return f"{pod.groups} some minutes after {pod.until}, since {pod.lost_node} with pod {pod.name} is not heard of"
    return f"{pod.groups} when pod {pod.name} has ended, by {pod.until}"
