"""What the metrics tell of CTAQuotas and queues. Pure reads."""

from collections.abc import Mapping
from typing import Any

from cta_group_operator.metrics import QueueFigures, QuotaFigures
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.view import ClusterView


def quota_figures(view: ClusterView) -> list[QuotaFigures]:
    """Return every CTAQuota with the numbers of its status."""
    return [
        QuotaFigures(
            one.ref.name,
            hard=one.spec.groups,
            used=one.status.used,
            pending=one.status.pending,
            uncharged=one.status.uncharged,
            borrowed=one.status.borrowed,
            lent=one.status.lent,
        )
        for one in view.quotas
    ]


def queue_figures(queues: Mapping[str, WorkQueue[Any]]) -> list[QueueFigures]:
    """Return every queue with how much is to be done and for how long."""
    return [QueueFigures(name, queue.depth, queue.oldest_seconds()) for name, queue in queues.items()]
