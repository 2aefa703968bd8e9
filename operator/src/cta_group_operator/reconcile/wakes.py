"""Looks where somebody may be let in now whom something else than a CTAQuota's limit refused."""

from typing import Final

from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock, ControllerView, FailureEvent, LimitView, QuotaView
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.wake import Waker

_SPACING_SECONDS: Final = 0.3
"""A controller that is refused says so several times a second at first."""


class Wakes:
    """One round a namespace."""

    def __init__(self, view: ClusterView, waker: Waker, clock: Clock, metrics: Metrics) -> None:
        self._view = view
        self.queue = WorkQueue[str](
            "wake", waker.wake_where_over, clock=clock, metrics=metrics, spacing_seconds=_SPACING_SECONDS
        )
        view.limits.subscribe(self._limit_changed)
        view.quotas.subscribe(self._quota_changed)
        view.failures.subscribe(self._failure_changed)
        for store in view.controllers.values():
            store.subscribe(self._controller_changed)

    def mark_everything(self) -> None:
        """Have a look wherever a controller is."""
        for controller in self._view.all_controllers():
            self.queue.mark(controller.ref.namespace)

    def _limit_changed(self, before: LimitView | None, after: LimitView | None) -> None:
        """Hear of what people made, and of what is gone; what a limit of ours allows is its CTAQuota's matter."""
        limit = after or before
        if limit is not None and (limit.quota is None or after is None):
            self.queue.mark(limit.ref.namespace)

    def _quota_changed(self, before: QuotaView | None, after: QuotaView | None) -> None:
        """Hear that a single pod may ask for more than before, or that nobody says any more how much."""
        was = before.spec.per_pod if before is not None else None
        now = after.spec.per_pod if after is not None else None
        if was != now and before is not None:
            for share in before.status.namespaces:
                self.queue.mark(share.name)

    def _failure_changed(self, _: FailureEvent | None, after: FailureEvent | None) -> None:
        controller = self._view.controller(after.about) if after is not None else None
        if controller is not None:
            self.queue.mark(controller.ref.namespace)

    def _controller_changed(self, before: ControllerView | None, after: ControllerView | None) -> None:
        if after is not None and (before is None or (before.failure, before.wanted) != (after.failure, after.wanted)):
            self.queue.mark(after.ref.namespace)
