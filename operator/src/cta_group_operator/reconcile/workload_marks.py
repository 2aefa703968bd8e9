"""Which workloads must be explained anew when something changed."""

from collections.abc import Callable, Iterable

from cta_group_core.names import QUOTA_OBJECT_NAME
from cta_group_core.quota import CONDITION_READY
from cta_group_core.workload import object_name
from cta_group_operator.ports import (
    AutoscalerView,
    ControllerView,
    CtaNodeView,
    FailureEvent,
    LimitView,
    NodeView,
    ObjectRef,
    PodView,
    QuotaView,
    WorkloadView,
)
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.view import ClusterView


class WorkloadMarks:
    """Marks top owners."""

    def __init__(
        self,
        view: ClusterView,
        denials: Denials,
        queue: WorkQueue[ObjectRef],
        is_own: Callable[[WorkloadView], bool] = lambda _: False,
    ) -> None:
        """``is_own``: tells whether an explanation is as this process wrote it."""
        self._view = view
        self._is_own = is_own
        self._denials = denials
        self._queue = queue
        view.limits.subscribe(self._limit_changed)
        view.quotas.subscribe(self._quota_changed)
        view.pods.subscribe(self._pod_changed)
        view.workloads.subscribe(self._workload_changed)
        view.failures.subscribe(self._failure_changed)
        view.autoscalers.subscribe(self._autoscaler_changed)
        view.cta_nodes.subscribe(self._cta_node_changed)
        view.nodes.subscribe(self._node_changed)
        for store in view.controllers.values():
            store.subscribe(self._controller_changed)

    def mark_everything(self) -> None:
        """Have a look at whatever asks for groups, and at every explanation that is there."""
        for controller in self._view.all_controllers():
            self.mark_top(controller.ref, controller.owner)
        for pod in self._view.pods:
            self.mark_top(pod.ref, pod.owner)
        for workload in self._view.workloads:
            self._mark_explained(workload)

    def mark_top(self, ref: ObjectRef, owner: ObjectRef | None) -> None:
        """Have a look at the top owner of an object."""
        self._queue.mark(self._view.top_owner(ref, owner))

    def pod_must_be_told(self, pod: PodView) -> None:
        """Hear that the reason changed why a pod waits."""
        self.mark_top(pod.ref, pod.owner)

    def _limit_changed(self, before: LimitView | None, after: LimitView | None) -> None:
        for limit in (before, after):
            if limit is not None:
                self._mark_denied_in(limit.ref.namespace)

    def _quota_changed(self, before: QuotaView | None, after: QuotaView | None) -> None:
        """Have those looked at whom it denies, when it says something else of itself."""
        if before is None or after is None or _says(before) == _says(after):
            return
        for share in after.status.namespaces:
            self._mark_denied_in(share.name)

    def _node_changed(self, before: NodeView | None, after: NodeView | None) -> None:
        """Have those looked at that have pods there, or wait for one that is being deleted there.

        Nobody knows when that ends, or again, and whether the others run.
        """
        was, now = (one is not None and one.facts.is_heard_of for one in (before, after))
        if (node := after or before) is None or was == now:
            return
        there = self._view.places.on(node.facts.name)
        for pod in there:
            self.mark_top(pod.ref, pod.owner)
        ending = {pod.ref.namespace for pod in there if pod.deleting}
        for limit in (self._view.limits.get(QUOTA_OBJECT_NAME, namespace) for namespace in ending):
            for one in self._view.limits_of(limit.quota) if limit is not None and limit.quota else ():
                self._mark_denied_in(one.ref.namespace)

    def _mark_denied_in(self, namespace: str) -> None:
        for controller in self._view.all_controllers():
            if controller.ref.namespace == namespace and self._denials.failure_of(controller) is not None:
                self.mark_top(controller.ref, controller.owner)

    def _pod_changed(self, before: PodView | None, after: PodView | None) -> None:
        for pod in (before, after):
            if pod is not None:  # a moment later, so that it is decided upon first
                self._queue.mark_soon(self._view.top_owner(pod.ref, pod.owner))
                self._mark_as_top(pod)

    def _mark_as_top(self, pod: PodView) -> None:
        """Have a pod looked at that was explained as a workload before it was known whose it is."""
        name = object_name(pod.ref.kind, pod.ref.name, pod.ref.api_version)
        if pod.owner is not None and self._view.workloads.get(name, pod.ref.namespace) is not None:
            self._queue.mark_soon(pod.ref)

    def _controller_changed(self, before: ControllerView | None, after: ControllerView | None) -> None:
        if before is not None and after is not None and before.means_the_same(after):
            return
        for one in (before, after):
            if one is not None:
                self.mark_top(one.ref, one.owner)

    def _failure_changed(self, _: FailureEvent | None, after: FailureEvent | None) -> None:
        controller = self._view.controller(after.about) if after is not None else None
        if controller is not None:
            self.mark_top(controller.ref, controller.owner)

    def _autoscaler_changed(self, before: AutoscalerView | None, after: AutoscalerView | None) -> None:
        """Have what it scales looked at; its own status, which changes often, says nothing here."""
        if before is not None and after is not None and before.means_the_same(after):
            return
        for one in (before, after):
            if one is not None:
                self._mark_scaled(one)

    def _mark_scaled(self, autoscaler: AutoscalerView) -> None:
        kind, name, namespace = autoscaler.target_kind, autoscaler.target_name, autoscaler.ref.namespace
        store = self._view.controllers.get(kind)
        target = store.get(name, namespace) if store is not None else None
        if target is not None:
            self.mark_top(target.ref, target.owner)
        elif (told := self._view.workloads.get(object_name(kind, name), namespace)) is not None:
            self._mark_explained(told)

    def _cta_node_changed(self, before: CtaNodeView | None, after: CtaNodeView | None) -> None:
        """Have everything looked at when a node brings or takes GPUs of other sizes: arguments are fitted to them.

        And the pods there that need clusters when what its GPUs are, or which of them they hold, is told otherwise.
        """
        if _sizes(before) != _sizes(after):
            for controller in self._view.all_controllers():
                self.mark_top(controller.ref, controller.owner)
        if (node := after or before) is not None and _generations(before) != _generations(after):
            self._mark_clustered(pod for pod in self._view.pods if pod.node == node.name)
        else:
            changed = {(namespace, name) for _, namespace, name in _holders(before) ^ _holders(after)}
            self._mark_clustered(self._view.pods.get(name, namespace) for namespace, name in changed)

    def _mark_clustered(self, pods: Iterable[PodView | None]) -> None:
        for pod in pods:
            if pod is not None and pod.terms.needs_clusters:
                self.mark_top(pod.ref, pod.owner)

    def _workload_changed(self, before: WorkloadView | None, after: WorkloadView | None) -> None:
        """Repair what somebody else changed or deleted."""
        told = after or before
        if told is not None and not (after is not None and self._is_own(after)):
            self._mark_explained(told)

    def _mark_explained(self, told: WorkloadView) -> None:
        if told.status is None:
            return
        owner = told.status.owner
        self._queue.mark(ObjectRef(owner.api_version, owner.kind, told.ref.namespace, owner.name, told.owner_uid))


def _says(quota: QuotaView) -> tuple[int, str | None, str]:
    ready = (one for one in quota.status.conditions if one.type == CONDITION_READY)
    return quota.spec.groups, quota.spec.cohort, next((f"{one.reason}: {one.message}" for one in ready), "")


def _sizes(node: CtaNodeView | None) -> frozenset[tuple[str, int, int, int]]:
    gpus = node.status.gpus if node is not None else ()
    return frozenset((gpu.product, gpu.capacity, gpu.memory_mib, gpu.reserve_mib) for gpu in gpus)


def _generations(node: CtaNodeView | None) -> frozenset[tuple[str, str]]:
    gpus = node.status.gpus if node is not None else ()
    return frozenset((gpu.uuid, gpu.compute_capability) for gpu in gpus)


def _holders(node: CtaNodeView | None) -> frozenset[tuple[str, str, str]]:
    """Return the GPU, namespace and name of each pod that holds something."""
    gpus = node.status.gpus if node is not None else ()
    return frozenset((gpu.uuid, one.namespace, one.pod) for gpu in gpus for one in gpu.allocations)
