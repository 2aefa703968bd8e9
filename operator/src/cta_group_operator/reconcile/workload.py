"""CTAWorkload: one object per top owner that explains why its pods are not running, written when it changes."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from cta_group_core.conditions import merge_conditions
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.workload import (
    CONDITION_PLACED,
    CONDITION_WITHIN_BUDGET,
    OBSTACLES,
    WorkloadStatus,
    object_name,
)
from cta_group_operator.errors import Conflict, NotFound
from cta_group_operator.logs import EventLog
from cta_group_operator.ports import Clock, KubeApi, ObjectRef, PodView, WorkloadView
from cta_group_operator.reconcile.budget import BudgetWatch
from cta_group_operator.reconcile.budget_pods import budget_of
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.workload_facts import server_of, workload_facts
from cta_group_operator.reconcile.workload_status import ServerReader, status_of
from cta_group_operator.reconcile.written import LastWritten
from cta_group_operator.resources import CTA_WORKLOADS, PODS

_log = EventLog(__name__)

_SURROUNDINGS_SECONDS: Final = 30.0
"""How old the answer may be whether a rollout finds room: that changes with every pod of the cluster."""


class WorkloadReconciler:
    """One round a top owner.

    ``refusals``: what placement has to say of a pod, by its uid. ``held``: why the API server keeps a pod's gate on, by
    uid. ``pauses``: why a gated pod is not looked at yet; empty when it is. ``budgets``: None where nobody looks.
    """

    def __init__(
        self,
        view: ClusterView,
        api: KubeApi,
        clock: Clock,
        *,
        events: EventWriter,
        denials: Denials,
        refusals: Mapping[str, str],
        servers: ServerReader,
        held: Mapping[str, str] = MappingProxyType({}),
        pauses: Callable[[PodView], str] = lambda _: "",
        budgets: BudgetWatch | None = None,
    ) -> None:
        self._view = view
        self._api = api
        self._clock = clock
        self._events = events
        self._denials = denials
        self._refusals = refusals
        self._held = held
        self._pauses = pauses
        self._servers = servers
        self._budgets = budgets
        self._written = LastWritten[WorkloadStatus | None]()
        self._sending: dict[tuple[str, str], WorkloadStatus] = {}
        """What is on its way to the API server, whose watch may be faster than its answer."""

    async def reconcile(self, top: ObjectRef) -> float | None:
        """Explain one workload; return the seconds after which the explanation is too old, None for never."""
        space = self._view.namespaces.get(top.namespace)
        if space is None or space.deleting:
            return None  # it takes everything along
        name = object_name(top.kind, top.name, top.api_version)
        existing = self._view.workloads.get(name, top.namespace)
        facts = workload_facts(top, self._view, self._denials, self._refusals, held=self._held, pauses=self._pauses)
        if facts is None:
            if existing is not None and existing.owner_uid == top.uid and not self._is_gone_pod(top):
                await self._delete(existing)  # of a workload that asks for groups no more
            return None
        if existing is not None and existing.owner_uid != top.uid:
            if self._is_anothers(existing, top):
                return _SURROUNDINGS_SECONDS
            await self._delete(existing)
            raise Conflict(f"{existing.ref} explained an older workload of that name; looked at again when it is gone")
        status = status_of(top, facts, server_of(top, self._view, self._servers))
        await self._tell(top, name, existing, status)
        return _SURROUNDINGS_SECONDS if facts.rollout is not None and facts.rollout.needs_room_first else None

    def _is_gone_pod(self, top: ObjectRef) -> bool:
        """Tell whether a pod is gone that was explained as such: Kubernetes takes its explanation along."""
        return top.kind == PODS.kind and self._view.pods.get(top.name, top.namespace) is None

    def deleted(self, workload: WorkloadView) -> None:
        """Hear that an explanation is gone: if its workload is not, it is made again."""
        self._written.forget((workload.owner_uid, workload.ref.name))

    def is_own(self, told: WorkloadView) -> bool:
        """Tell whether an explanation is as it was written here: nobody has to look at it because of that."""
        key = (told.owner_uid, told.ref.name)
        return self._sending.get(key) == told.status or self._written.is_last(key, told.resource_version)

    async def _delete(self, existing: WorkloadView) -> None:
        """Delete an explanation as it was seen; a workload that is gone takes its own along, perhaps before."""
        with suppress(NotFound):
            path = CTA_WORKLOADS.path(existing.ref.namespace, existing.ref.name)
            await self._api.delete(path, existing.resource_version)

    def _is_anothers(self, existing: WorkloadView, top: ObjectRef) -> bool:
        """Tell whether an explanation is about a living workload of another group's kind of that name.

        Whichever was explained first keeps it: two that delete each other's would do so for ever.
        """
        owner = existing.status.owner if existing.status is not None else None
        if owner is None or owner.api_version.rpartition("/")[0] == top.api_version.rpartition("/")[0]:
            return False
        other = replace(top, api_version=owner.api_version, uid=existing.owner_uid)
        return bool(self._view.pods_of(other.uid) or self._view.controllers_under(other))

    async def _tell(self, top: ObjectRef, name: str, existing: WorkloadView | None, status: WorkloadStatus) -> None:
        key = (top.uid, name)
        seen = existing.status if existing is not None else None
        before = self._written.current(key, seen, existing.resource_version if existing is not None else "0")
        status = self._with_budget(top, before, status)
        moment = self._clock.utc_text()
        conditions = merge_conditions(before.conditions if before else (), status.conditions, moment)
        status = status.model_copy(update={"conditions": conditions})
        if status == before:
            return
        if existing is None and before is None:
            await self._create(top, name)
        path = CTA_WORKLOADS.path(top.namespace, name, "status")
        self._sending[key] = status
        try:
            answer = await self._api.merge_patch(path, {"status": status.as_merge_patch()})
        except NotFound as gone:
            self._written.forget(key)
            raise Conflict(f"CTAWorkload {name} was deleted meanwhile") from gone
        finally:
            del self._sending[key]
        self._written.remember(key, status, answer)
        await self._announce(top, before, status)

    def _with_budget(self, top: ObjectRef, before: WorkloadStatus | None, status: WorkloadStatus) -> WorkloadStatus:
        """Add what is known of the budget; what a former leader told stays until this one knows better."""
        if self._budgets is None or not self._budgets.is_on or budget_of(top, self._view) is None:
            return status
        report = self._budgets.report(top)
        if report is not None:
            told: tuple[Condition, ...] = (report.condition,)
            budget = report.status
        elif before is not None and before.budget is not None:
            told = tuple(one for one in before.conditions if one.type == CONDITION_WITHIN_BUDGET)
            budget = before.budget
        else:
            return status
        return status.model_copy(update={"conditions": (*status.conditions, *told), "budget": budget})

    async def _create(self, top: ObjectRef, name: str) -> None:
        owner = {"apiVersion": top.api_version, "kind": top.kind, "name": top.name, "uid": top.uid}
        body = {
            "apiVersion": CTA_WORKLOADS.group_version,
            "kind": CTA_WORKLOADS.kind,
            "metadata": {"name": name, "namespace": top.namespace, "ownerReferences": [owner]},
        }
        try:
            await self._api.create(CTA_WORKLOADS.path(top.namespace), body)
        except Conflict:
            _log.debug("workload_exists", workload=name)  # by an attempt whose status was not written

    async def _announce(self, top: ObjectRef, before: WorkloadStatus | None, now: WorkloadStatus) -> None:
        """Write an event on the workload for each obstacle that is new."""
        known = {one.type: one.reason for one in before.conditions} if before else {}
        for condition in now.conditions:
            new = known.get(condition.type) != condition.reason
            if condition.status is not ConditionStatus.FALSE or not new or condition.reason in _TRANSIENT:
                continue
            if top.kind == PODS.kind and condition.type == CONDITION_PLACED:
                continue  # the placement or the scheduler says the same on the pod itself
            since = condition.last_transition_time or "" if condition.type in OBSTACLES else ""
            await self._events.write(top, condition.reason, condition.message, once_for=since)


_TRANSIENT = ("Waiting", "QuotaRetry", "QuotaMoving", "QuotaNotCounted")
"""Reasons that pass within seconds by themselves: told in the status, no event."""
