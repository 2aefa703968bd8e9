"""What the metrics tell of CTAQuotas, workloads and queues. Pure reads.

Workloads are told by their CTAWorkloads, as quotas are by their own status: a replica that begins to lead knows at once
what the one before knew, and nothing that is gone stays in the memory of a process.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cta_group_core.budget.report import BudgetReport
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.workload import (
    CONDITION_WITHIN_BUDGET,
    OBSTACLES,
    BudgetStatus,
    WorkloadOwner,
    WorkloadStatus,
    object_name,
)
from cta_group_operator.metrics import BudgetFigures, QueueFigures, QuotaFigures, WorkloadFigures
from cta_group_operator.ports import ObjectRef, WorkloadView
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import PODS, is_followed


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


def workload_figures(view: ClusterView) -> list[WorkloadFigures]:
    """Return every workload that is there, with what its CTAWorkload says."""
    return [_workload(one, status) for one, status in _explained(view)]


def budget_figures(view: ClusterView, newest: Callable[[str], BudgetReport | None]) -> list[BudgetFigures]:
    """Return the latency budget of every workload that has one.

    ``newest``: what was measured by uid of the top owner; where that is nothing, what a former leader wrote counts.
    """
    found = []
    for one, status in _explained(view):
        told = next((each for each in status.conditions if each.type == CONDITION_WITHIN_BUDGET), None)
        if status.budget is None or told is None:
            continue
        report = newest(one.owner_uid) or BudgetReport(told, status.budget)
        found.append(_budget(one, status, report.condition, report.status))
    return found


def queue_figures(queues: Mapping[str, WorkQueue[Any]]) -> list[QueueFigures]:
    """Return every queue with how much is to be done and for how long."""
    return [QueueFigures(name, queue.depth, queue.oldest_seconds()) for name, queue in queues.items()]


def _explained(view: ClusterView) -> Iterator[tuple[WorkloadView, WorkloadStatus]]:
    """Yield each explanation of a workload that is there, under the name that the operator gives it: one a workload."""
    for one in view.workloads:
        status = one.status
        if status is None or one.ref.name != _name_for(status.owner):
            continue
        if _asks(status.owner, one, view):
            yield one, status


def _name_for(owner: WorkloadOwner) -> str:
    return object_name(owner.kind, owner.name, owner.api_version)


def _asks(owner: WorkloadOwner, one: WorkloadView, view: ClusterView) -> bool:
    """Tell whether the owner is there and asks for groups; of a kind that is not followed, whether it has pods."""
    space = one.ref.namespace
    ref = ObjectRef(owner.api_version, owner.kind, space, owner.name, one.owner_uid)
    if is_followed(ref):
        return view.controller(ref.uid) is not None
    if owner.kind == PODS.kind:
        pod = view.pods.get(owner.name, space)
        return pod is not None and pod.ref.uid == ref.uid
    return bool(view.pods_of(ref.uid) or view.controllers_under(ref))


def _workload(one: WorkloadView, status: WorkloadStatus) -> WorkloadFigures:
    blocked = [told.reason for told in status.conditions if _is_obstacle(told)]
    requested = status.groups_per_pod * status.replicas_wanted
    owner = status.owner
    return WorkloadFigures(one.ref.namespace, owner.kind, owner.name, requested, blocked[0] if blocked else None)


def _is_obstacle(told: Condition) -> bool:
    return told.status is ConditionStatus.FALSE and told.type in OBSTACLES


def _budget(one: WorkloadView, status: WorkloadStatus, condition: Condition, budget: BudgetStatus) -> BudgetFigures:
    known = [
        (each.name, each.observed_microseconds / each.limit_microseconds)
        for each in budget.measured
        if each.observed_microseconds is not None and each.limit_microseconds > 0
    ]
    kept = None if condition.status is ConditionStatus.UNKNOWN else condition.status is ConditionStatus.TRUE
    return BudgetFigures(
        namespace=one.ref.namespace,
        kind=status.owner.kind,
        name=status.owner.name,
        kept=kept,
        ratios=tuple(known),
        recommended=budget.recommended_groups,
    )
