"""Which quotas must be looked at when something changed."""

from cta_group_core.names import QUOTA_OBJECT_NAME
from cta_group_operator.ports import (
    ControllerView,
    CtaNodeView,
    FailureEvent,
    LimitView,
    NamespaceView,
    NodeView,
    PodView,
    QuotaView,
)
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.quota_scope import cohort_key
from cta_group_operator.reconcile.view import ClusterView


class QuotaMarks:
    """Marks the cohort of a CTAQuota, or the name of one that is gone."""

    def __init__(self, view: ClusterView, denials: Denials, queue: WorkQueue[str]) -> None:
        self._view = view
        self._denials = denials
        self._queue = queue
        view.quotas.subscribe(self._quota_changed)
        view.limits.subscribe(self._limit_changed)
        view.namespaces.subscribe(self._namespace_changed)
        view.pods.subscribe(self._pod_changed)
        view.nodes.subscribe(self._node_changed)
        view.cta_nodes.subscribe(self._cta_node_changed)
        view.failures.subscribe(self._failure_changed)
        for store in view.controllers.values():
            store.subscribe(self._controller_changed)

    def mark_everything(self) -> None:
        """Have a look at all, and at what CTAQuotas that are gone left behind."""
        self._mark_all_quotas()
        for limit in self._view.limits:
            self._mark(limit.quota)

    def _mark(self, name: str | None) -> None:
        quota = self._view.quotas.get(name) if name else None
        if quota is not None:
            self._queue.mark(cohort_key(quota))
        elif name:
            self._queue.mark(name)

    def _mark_quota_of(self, namespace: str) -> None:
        limit = self._view.limits.get(QUOTA_OBJECT_NAME, namespace)
        self._mark(limit.quota if limit is not None else None)

    def _mark_all_quotas(self) -> None:
        for quota in self._view.quotas:
            self._queue.mark(cohort_key(quota))

    def _mark_if_denied(self, controller: ControllerView | None) -> None:
        """Have a look at the quota that refuses a controller's pods; nothing when none does."""
        if controller is not None and self._denials.is_denied_groups(controller):
            self._mark_quota_of(controller.ref.namespace)

    def _controller_changed(self, before: ControllerView | None, after: ControllerView | None) -> None:
        """Have a look at the quota of a controller that is denied, or that may have been and wants less now."""
        if before is not None and (after is None or (before.wanted, before.failure) != (after.wanted, after.failure)):
            self._mark_quota_of(before.ref.namespace)
        else:
            self._mark_if_denied(after)

    def _failure_changed(self, _: FailureEvent | None, after: FailureEvent | None) -> None:
        self._mark_if_denied(self._view.controller(after.about) if after is not None else None)

    def _quota_changed(self, before: QuotaView | None, after: QuotaView | None) -> None:
        if before is not None and after is not None and before.spec == after.spec:
            self._queue.mark(cohort_key(after))
            return
        if before is not None:
            self._queue.mark(before.ref.name)  # it may be gone
            self._queue.mark(cohort_key(before))
        self._mark_all_quotas()  # its namespaces may belong to another now

    def _limit_changed(self, before: LimitView | None, after: LimitView | None) -> None:
        for limit in (before, after):
            if limit is not None and limit.quota:
                self._mark(limit.quota)
            elif limit is not None:
                self._mark_all_quotas()

    def _namespace_changed(self, before: NamespaceView | None, after: NamespaceView | None) -> None:
        if before is None or after is None or not before.means_the_same(after):
            self._mark_all_quotas()

    def _pod_changed(self, before: PodView | None, after: PodView | None) -> None:
        """Hear that a pod is being deleted: others of the cohort may wait for its groups.

        And that it is gone then: it may have held what its quota was not charged for any more.
        """
        was, now = (one is not None and one.deleting and not one.is_over for one in (before, after))
        if (pod := after or before) is not None and was != now:
            self._mark_quota_of(pod.ref.namespace)

    def _node_changed(self, before: NodeView | None, after: NodeView | None) -> None:
        """Hear that a node is lost, or comes back: what is held there may be charged to nobody."""
        was, now = (one is not None and one.facts.is_heard_of for one in (before, after))
        if (node := after or before) is not None and was != now:
            for namespace in {namespace for namespace, _ in _holders(self._view.cta_nodes.get(node.facts.name))}:
                self._mark_quota_of(namespace)

    def _cta_node_changed(self, before: CtaNodeView | None, after: CtaNodeView | None) -> None:
        """Hear that something is held no longer that nobody was charged for, or that a pod holds that should be gone.

        A node may tell of a pod's groups after the pod was deleted: it reports in rounds of its own.
        """
        was, now = _holders(before), _holders(after)
        for namespace in {namespace for namespace, _ in was - now}:
            limit = self._view.limits.get(QUOTA_OBJECT_NAME, namespace)
            quota = self._view.quotas.get(limit.quota) if limit is not None and limit.quota else None
            if quota is not None and quota.status.uncharged:
                self._queue.mark(cohort_key(quota))
        for namespace in {namespace for namespace, pod in now - was if self._should_end(namespace, pod)}:
            self._mark_quota_of(namespace)

    def _should_end(self, namespace: str, name: str) -> bool:
        pod = self._view.pods.get(name, namespace)
        return pod is None or pod.deleting or pod.is_over


def _holders(node: CtaNodeView | None) -> set[tuple[str, str]]:
    """Return namespace and name of each pod that holds something there."""
    gpus = () if node is None else node.status.gpus
    return {(one.namespace, one.pod) for gpu in gpus for one in gpu.allocations}
