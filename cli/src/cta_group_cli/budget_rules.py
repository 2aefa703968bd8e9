"""What the operator would say of the latency budget in a manifest."""

from collections.abc import Sequence

from cta_group_cli.manifest_pods import ManifestContainer
from cta_group_cli.manifests import PodTemplate
from cta_group_core.annotations import unreadable
from cta_group_core.budget.target import served_by
from cta_group_core.names import ANNOTATION_BUDGET, ANNOTATION_METRICS_PORT


def budget_warnings(template: PodTemplate, containers: Sequence[ManifestContainer]) -> list[str]:
    """Return what keeps the latencies of a budget from being read; nothing without one, or where it cannot be read."""
    annotations = {**template.annotations, **template.own_annotations}
    text = annotations.get(ANNOTATION_BUDGET)
    if text is None:
        return []
    if {ANNOTATION_BUDGET, ANNOTATION_METRICS_PORT} & unreadable(annotations).keys():
        return []
    problem = served_by([one.facts for one in containers], template.labels, annotations).problem
    return [f"annotation {ANNOTATION_BUDGET}: its latencies cannot be read: {problem}"] if problem else []
