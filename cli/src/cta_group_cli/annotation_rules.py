"""Annotations of a manifest that would be ignored: nobody can read them, or nobody looks where they are."""

from collections.abc import Collection
from typing import Final

from cta_group_cli.manifests import PodTemplate
from cta_group_core.annotations import OF_USERS, unreadable
from cta_group_core.names import ANNOTATION_BUDGET, ANNOTATION_METRICS_PORT

_COPY_NOTHING: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"})
"""Kinds whose own annotations never come to their pods; those of a serving stack may."""
_OF_WORKLOADS: Final = frozenset({ANNOTATION_BUDGET, ANNOTATION_METRICS_PORT})


def annotation_warnings(template: PodTemplate, refused: Collection[str]) -> list[str]:
    """Return a warning for each; none for what is among the sentences of a refusal already."""
    wrong = [one for one in unreadable(template.every_annotation).values() if one not in refused]
    return [f"ignored: {one}" for one in (*wrong, *_misplaced(template))]


def _misplaced(template: PodTemplate) -> list[str]:
    if template.kind not in _COPY_NOTHING:
        return []
    own = sorted(template.own_annotations.keys() & (OF_USERS.keys() - _OF_WORKLOADS))
    return [f"annotation {name} is at the {template.kind} itself: write it at its pod template" for name in own]
