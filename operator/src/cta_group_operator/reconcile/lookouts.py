"""What is looked out for beside a pod's usual way: refusals, pods past the webhook, silent plugins, deaf schedulers."""

from collections.abc import Callable, Coroutine
from typing import Any

from cta_group_core.refusals import does_not_honour_gates
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock, KubeApi, PodView
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.in_flight import is_gated
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.refused import RefusedPods
from cta_group_operator.reconcile.slipped import AdvisePod, ReadLoad, ReadPod, SlippedPods
from cta_group_operator.reconcile.stale import StaleNodes
from cta_group_operator.reconcile.unclaimed import Unclaimed
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.wake import Waker
from cta_group_operator.reconcile.wakes import Wakes
from cta_group_operator.settings import Settings


class Lookouts:
    """All of them. ``plan_again``: called when placement is to look at its pods again."""

    def __init__(
        self,
        settings: Settings,
        view: ClusterView,
        api: KubeApi,
        clock: Clock,
        *,
        metrics: Metrics,
        events: EventWriter,
        read_pod: ReadPod,
        read_load: ReadLoad,
        advise: AdvisePod,
        plan_again: Callable[[], None],
    ) -> None:
        self._gateless = settings.gateless_schedulers
        self.refused = RefusedPods(
            view, api, clock, metrics=metrics, events=events, keep=not settings.deletes_refused_pods
        )
        self.slipped = SlippedPods(
            view,
            api,
            clock,
            metrics=metrics,
            events=events,
            read=read_pod,
            load=read_load,
            advise=advise,
            period_seconds=settings.slipped_pods_seconds,
            found_gone=plan_again,
        )
        self.stale = StaleNodes(
            view,
            api,
            clock,
            metrics=metrics,
            stale_seconds=settings.stale_node_seconds,
            is_gone=self.slipped.is_gone,
            became=plan_again,
        )
        self.unclaimed = Unclaimed(view, clock)
        denials = Denials(view, settings.resource_name)
        self._wakes = Wakes(view, Waker(view, api, metrics, denials), clock, metrics)

    @property
    def queues(self) -> dict[str, WorkQueue[Any]]:
        """Everything that must run, by name."""
        return {
            "refused": self.refused.queue,
            "slipped": self.slipped.queue,
            "stale": self.stale.queue,
            "wakes": self._wakes.queue,
        }

    def loops(self) -> dict[str, Callable[[], Coroutine[Any, Any, Any]]]:
        """Return what runs beside the queues."""
        return {"pods without the label": self.slipped.run}

    def mark_everything(self) -> None:
        """Look at everything afresh."""
        self.refused.mark_everything()
        self.slipped.mark_everything()
        self.stale.mark_everything()
        self._wakes.mark_everything()

    def forget(self) -> None:
        """Forget what only a leader finds out; what every replica hears stays."""
        self.slipped.forget()

    def words_for(self, pod: PodView) -> str:
        """Return why a pod that has no node waits, if it is for one of these; else empty."""
        if is_gated(pod):
            return self.refused.words_for(pod)
        if pod.scheduler in self._gateless:
            return does_not_honour_gates(pod.scheduler)
        return self.unclaimed.words_for(pod)
