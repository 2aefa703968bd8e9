"""All the leader's work together: who must look when something changed, and the queues that run it."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from cta_group_operator.metrics import Figures, Metrics
from cta_group_operator.ports import (
    Clock,
    CtaNodeView,
    KubeApi,
    NodeView,
    ObjectRef,
    PodView,
    WorkloadView,
)
from cta_group_operator.reconcile.budget import BudgetWatch
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.figures import budget_figures, queue_figures, quota_figures, workload_figures
from cta_group_operator.reconcile.lookouts import Lookouts
from cta_group_operator.reconcile.node_labels import NodeLabeller, labels_of
from cta_group_operator.reconcile.placement import Placement
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.quota import QuotaReconciler
from cta_group_operator.reconcile.quota_limits import ReadLimit
from cta_group_operator.reconcile.quota_marks import QuotaMarks
from cta_group_operator.reconcile.slipped import ReadLoad, ReadPod
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.workload import WorkloadReconciler
from cta_group_operator.reconcile.workload_marks import WorkloadMarks
from cta_group_operator.reconcile.workload_status import ServerReader
from cta_group_operator.server_metrics import ServerMetrics
from cta_group_operator.settings import Settings

_QUOTA_SPACING_SECONDS: Final = 0.3
"""Each pod changes what its quota uses; its status need not follow faster than this."""
_WORKLOAD_SPACING_SECONDS: Final = 0.2
_POD_SETTLES_SECONDS: Final = 2.0
"""A pod that changed is explained a moment later: most are placed, bound and started by then, and one sentence does for
all of that. What keeps a pod from its node is said at once."""


class Work:
    """The reconcilers, their queues, and what marks them.

    A replica that does not lead rests: it keeps nothing, and :meth:`begin` looks at everything afresh.
    """

    def __init__(
        self,
        settings: Settings,
        view: ClusterView,
        api: KubeApi,
        clock: Clock,
        *,
        metrics: Metrics,
        read_limit: ReadLimit,
        read_pod: ReadPod,
        read_load: ReadLoad,
        servers: ServerReader,
        server_metrics: ServerMetrics,
    ) -> None:
        self._view = view
        events = self._events = EventWriter(api, clock, settings.identity)
        self._denials = Denials(view, settings.resource_name)
        self.lookouts = Lookouts(
            settings,
            view,
            api,
            clock,
            metrics=metrics,
            events=events,
            read_pod=read_pod,
            read_load=read_load,
            advise=servers.missed,
            plan_again=self._plan_again,
        )
        self.placement = Placement(
            view,
            api,
            clock,
            settings=settings,
            metrics=metrics,
            events=events,
            tell=self._pod_must_be_told,
            wait_of=self.lookouts.refused.wait_of,
            room_of=self.lookouts.stale.room_of,
            unclaimed=self.lookouts.unclaimed,
        )
        self._quota = QuotaReconciler(
            view,
            api,
            clock,
            metrics=metrics,
            events=events,
            denials=self._denials,
            read_limit=read_limit,
            resource_name=settings.resource_name,
        )
        self._budgets = BudgetWatch(
            view, server_metrics, clock, metrics=metrics, seconds=settings.budget_seconds, tell=self._mark_workload
        )
        self._explainer = WorkloadReconciler(
            view,
            api,
            clock,
            events=events,
            denials=self._denials,
            refusals=self.placement.words,
            held=self.placement.held,
            pauses=self.lookouts.words_for,
            servers=servers,
            budgets=self._budgets,
        )
        self._labeller = NodeLabeller(view, api)
        self._queues = self._make_queues(clock, metrics)
        self._quota_marks = QuotaMarks(view, self._denials, self._quotas)
        self._workload_marks = WorkloadMarks(view, self._denials, self._workloads, self._explainer.is_own)
        self.end()
        self._subscribe()

    def _make_queues(self, clock: Clock, metrics: Metrics) -> dict[str, WorkQueue[Any]]:
        self._quotas = WorkQueue[str](
            "quota",
            self._quota.reconcile,
            clock=clock,
            metrics=metrics,
            concurrency=1,  # namespaces move between quotas, and quotas between cohorts
            spacing_seconds=_QUOTA_SPACING_SECONDS,
        )
        self._workloads = WorkQueue[ObjectRef](
            "workload",
            self._explain,
            clock=clock,
            metrics=metrics,
            spacing_seconds=_WORKLOAD_SPACING_SECONDS,
            settle_seconds=_POD_SETTLES_SECONDS,
        )
        self._nodes = WorkQueue[str]("node", self._labeller.reconcile, clock=clock, metrics=metrics)
        return {
            "quotas": self._quotas,
            "workloads": self._workloads,
            "nodes": self._nodes,
            **self.lookouts.queues,
            "budgets": self._budgets.queue,
            **self.placement.queues,
        }

    def begin(self) -> None:
        """Take marks from now on, and look at everything afresh."""
        for queue in self._queues.values():
            queue.wake()
        self._mark_everything()

    def end(self) -> None:
        """Forget what was decided and what was to be done: another replica may decide otherwise meanwhile."""
        for queue in self._queues.values():
            queue.rest()
        self.lookouts.forget()
        self.placement.forget()
        self._quota.forget()
        self._budgets.forget()

    def loops(self) -> dict[str, Callable[[], Coroutine[Any, Any, Any]]]:
        """Return what the leader runs, by name."""
        queues = {name: queue.run for name, queue in self._queues.items()}
        return {**queues, **self.lookouts.loops(), "events": self._events.run}

    def stalled_seconds(self) -> dict[str, float]:
        """Return for each queue for how long there was something to do and no round ended."""
        return {name: queue.stalled_seconds() for name, queue in self._queues.items()}

    def _mark_everything(self) -> None:
        self._quota_marks.mark_everything()
        self._workload_marks.mark_everything()
        for name in (*(node.name for node in self._view.cta_nodes), *self._labeller.to_do):
            self._nodes.mark(name)
        self.lookouts.mark_everything()
        self.placement.resume()
        self._budgets.mark_everything()

    def figures(self) -> Figures:
        """Return what the metrics tell of the cluster."""
        return Figures(
            leader=True,
            quotas=quota_figures(self._view),
            workloads=workload_figures(self._view),
            budgets=budget_figures(self._view, self._budgets.newest),
            waiting=self.placement.waiting,
            release_refused=len(self.placement.held),
            room_kept=self.placement.room_kept,
            backed_off=self.placement.backed_off,
            without_webhook=self.lookouts.slipped.count,
            queues=queue_figures(self._queues),
            stale_nodes=self.lookouts.stale.count,
        )

    async def _explain(self, top: ObjectRef) -> float | None:
        """Explain a workload. One that was marked before its owner was known is explained as its owner."""
        await self.placement.planned.wait()
        if (owner := self._view.owner_of(top)) is not None:
            self._workload_marks.mark_top(top, owner)
        return await self._explainer.reconcile(top)

    def _pod_must_be_told(self, pod: PodView) -> None:
        self._workload_marks.pod_must_be_told(pod)

    def _mark_workload(self, top: ObjectRef) -> None:
        self._workloads.mark(top)

    def _subscribe(self) -> None:
        view = self._view
        view.nodes.subscribe(self._node_changed)
        view.cta_nodes.subscribe(self._cta_node_changed)
        view.workloads.subscribe(self._workload_changed)

    def _workload_changed(self, before: WorkloadView | None, after: WorkloadView | None) -> None:
        if before is not None and after is None:
            self._explainer.deleted(before)

    def _node_changed(self, before: NodeView | None, after: NodeView | None) -> None:
        if before is not None and after is not None and (before.facts, before.uid) == (after.facts, after.uid):
            return
        self._plan_again()
        if after is not None:
            self._nodes.mark(after.facts.name)

    def _plan_again(self) -> None:
        self.placement.plan_again()

    def _cta_node_changed(self, before: CtaNodeView | None, after: CtaNodeView | None) -> None:
        if before is not None and after is not None and before.status.says_the_same(after.status):
            return
        self._plan_again()
        if before is not None and after is None:
            self._labeller.left(before.name)
        if before is None or after is None or _machine_facts(before) != _machine_facts(after):
            for one in filter(None, (before, after)):
                self._nodes.mark(one.name)


def _machine_facts(node: CtaNodeView) -> tuple[str | None, dict[str, str]]:
    """Return what is told of the machine itself, which pods that come and go do not change."""
    return node.status.node_uid, labels_of(node.status)
