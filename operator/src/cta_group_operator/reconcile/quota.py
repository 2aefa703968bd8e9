"""CTAQuotas become ResourceQuotas: read the cohort, decide, write what may be written now, tell the status once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cta_group_core.conditions import merge_conditions
from cta_group_core.quota import QuotaStatus
from cta_group_operator.errors import ApiError, ApiUnavailable, Conflict, NotFound
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.one_by_one import OneByOne
from cta_group_operator.ports import Clock, KubeApi, LimitView, PodView, QuotaView
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.quota_charges import Charges
from cta_group_operator.reconcile.quota_limits import LimitWriter, ReadLimit
from cta_group_operator.reconcile.quota_scope import Keepers, Scope, members_of
from cta_group_operator.reconcile.quota_snapshot import Observer, Snapshot
from cta_group_operator.reconcile.quota_status import quota_status
from cta_group_operator.reconcile.quota_uncharged import UnchargedHolders
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.wake import Waker
from cta_group_operator.reconcile.written import LastWritten
from cta_group_operator.resources import CTA_QUOTAS, PODS

_log = EventLog(__name__)

_REFUSED_SECONDS: Final = 30.0
"""What the API server refused is tried again after this; nobody tells when it would be taken."""


class QuotaReconciler:
    """One round a cohort, or a CTAQuota of no cohort. Rounds must not overlap: namespaces move between cohorts."""

    def __init__(
        self,
        view: ClusterView,
        api: KubeApi,
        clock: Clock,
        *,
        metrics: Metrics,
        events: EventWriter,
        denials: Denials,
        read_limit: ReadLimit,
        resource_name: str,
    ) -> None:
        self._view = view
        self._api = api
        self._clock = clock
        self._events = events
        self._keepers = Keepers(view)
        self._observer = Observer(view, self._keepers, denials)
        self._limits = LimitWriter(api, read_limit, resource_name)
        self._waker = Waker(view, api, metrics, denials)
        self._charges = Charges(view, clock)
        self._uncharged = UnchargedHolders(view, clock)
        self._resource_name = resource_name
        self._written = LastWritten[QuotaStatus]()
        self._stuck: set[str] = set()
        """CTAQuotas that waited for room when they were looked at last."""

    async def reconcile(self, key: str) -> float | None:
        """Bring ResourceQuotas and status of the CTAQuotas of ``key`` to what they should be, as far as is safe now.

        Return the seconds after which another round would tell more though nothing happens; None: it would not.
        """
        snapshot = self._observer.look(key)
        if not snapshot.quotas:
            self._stuck.discard(key)
            self._charges.drop(key)
            if self._view.quotas.get(key) is None:  # it may only have joined a cohort
                self._written.forget(("", key))
            return await self._remove_all(key)
        if snapshot.plan.writes or snapshot.victims:
            for limit in await self._limits.read_all():
                self._view.limits.put(limit)
            snapshot = self._observer.look(key)
        self._note_stuck(snapshot)
        turns = OneByOne()
        kept: list[str] = []
        refused = await self._act(key, snapshot, turns, kept)
        if snapshot.plan.writes and not any((*refused.values(), kept, turns.failed)):
            return None  # the writes come back as events, and the round after them tells the status
        for quota in snapshot.quotas:
            with turns.one(quota.ref):
                await self._tell(quota, self._status(quota, snapshot, refused[quota.ref.name], kept))
        with turns.one(f"controllers that {key} refused"):
            await self._waker.wake_in(_at_their_limits(snapshot))
        turns.end()
        again = (
            self._charges.seconds_left(snapshot.scopes),
            self._uncharged.seconds_left(snapshot.scopes.values()),
            _REFUSED_SECONDS if kept or any(refused.values()) else None,
        )
        return min((seconds for seconds in again if seconds is not None), default=None)

    def _status(self, quota: QuotaView, snapshot: Snapshot, refused: list[str], kept: list[str]) -> QuotaStatus:
        scope = snapshot.scopes[quota.ref.name]
        return quota_status(
            quota,
            snapshot,
            refused=refused,
            kept=kept,
            stale=self._charges.stale(quota.ref.name, scope),
            uncharged=self._uncharged.of(scope),
            resource_name=self._resource_name,
        )

    def forget(self) -> None:
        """Start afresh: another replica may have decided meanwhile."""
        self._stuck.clear()
        self._charges.forget()

    async def _act(self, key: str, snapshot: Snapshot, turns: OneByOne, kept: list[str]) -> dict[str, list[str]]:
        """Make the writes; return for each CTAQuota what the API server refused. Raises Conflict after the last.

        ``kept``: gets what it says to the deletion of pods.
        """
        refused = {name: await self._let_go(scope, turns) for name, scope in snapshot.scopes.items()}
        await self._write_limits(key, snapshot, refused, turns)
        if not snapshot.plan.writes:
            for limit in snapshot.not_enforced:
                with turns.one(limit.ref):
                    await self._limits.enforce(limit, limit.hard or 0)
        if not any(refused.values()):
            for pod in snapshot.victims:
                with turns.one(pod.ref), _refusals(kept):
                    await self._reclaim(pod)
        return refused

    async def _write_limits(self, key: str, snapshot: Snapshot, refused: dict[str, list[str]], turns: OneByOne) -> None:
        writes = OneByOne()
        for write in snapshot.plan.writes:
            if not self._still(key, snapshot):
                raise Conflict(f"the CTAQuotas of {key} changed while their limits were being written")
            with writes.one(f"{write.quota} in {write.namespace}"), _refusals(refused[write.quota]):
                await self._limits.write(write, snapshot.limit(write.quota, write.namespace))
        for failed in writes.failed:
            if isinstance(failed, Conflict):
                raise failed
        turns.failed += writes.failed

    def _still(self, key: str, snapshot: Snapshot) -> bool:
        """Tell whether people still want what the snapshot was decided for."""
        now = [(one.ref.name, one.spec) for one in members_of(key, self._view)]
        return now == [(one.ref.name, one.spec) for one in snapshot.quotas]

    def _note_stuck(self, snapshot: Snapshot) -> None:
        """Remember who waits for room that no write of this round makes."""
        for name, member in snapshot.plan.members.items():
            if member.waiting and not snapshot.plan.writes:
                self._stuck.add(name)
            else:
                self._stuck.discard(name)

    async def _let_go(self, scope: Scope, turns: OneByOne) -> list[str]:
        """Delete limits in namespaces that left, and return what the API server refused.

        One that another CTAQuota keeps now is left for that to take over.
        """
        refused: list[str] = []
        for limit in scope.leaving:
            if self._is_to_go(limit):
                with turns.one(limit.ref), _refusals(refused):
                    await self._limits.delete(limit)
        return refused

    def _is_to_go(self, limit: LimitView) -> bool:
        """Tell whether nobody takes over a limit: its namespace belongs to no CTAQuota, or both wait for each other."""
        namespace = self._view.namespaces.get(limit.ref.namespace)
        if namespace is None or namespace.deleting:
            return False  # it takes everything along
        keeper = self._keepers.keeper(namespace.name)
        return keeper is None or {keeper, limit.quota} <= self._stuck

    async def _remove_all(self, name: str) -> float | None:
        """Delete what a CTAQuota left behind, after asking whether it is really gone; return when to try again."""
        limits = self._view.limits_of(name)
        if not limits or self._view.quotas.get(name) is not None:
            return None
        try:
            await self._api.get(CTA_QUOTAS.path(name=name))
        except NotFound:
            turns = OneByOne()
            refused = await self._let_go(Scope((), {}, leaving=limits), turns)
            turns.end()
            return _REFUSED_SECONDS if refused else None
        return None

    async def _reclaim(self, pod: PodView) -> None:
        """Delete a pod so that another quota gets its own groups back."""
        try:
            await self._api.delete(PODS.path(pod.ref.namespace, pod.ref.name), pod.resource_version)
        except NotFound:
            return
        told = f"deleted: its {pod.groups} groups were borrowed, and the CTAQuota that owns them needs them"
        await self._events.write(pod.ref, "GroupsReclaimed", told, once_for=pod.ref.uid)
        _log.info("reclaimed", pod=pod.ref, groups=pod.groups)

    async def _tell(self, quota: QuotaView, status: QuotaStatus) -> None:
        key = ("", quota.ref.name)
        before = self._written.current(key, quota.status, quota.resource_version)
        conditions = merge_conditions(before.conditions, status.conditions, self._clock.utc_text())
        status = status.model_copy(update={"conditions": conditions})
        if status == before:
            return
        path = CTA_QUOTAS.path(name=quota.ref.name, subresource="status")
        try:
            answer = await self._api.merge_patch(path, {"status": status.as_api()})
        except NotFound:
            return  # deleted meanwhile
        self._written.remember(key, status, answer)


@contextmanager
def _refusals(into: list[str]) -> Iterator[None]:
    """Keep what the API server says to a write; raise what the next attempt may change by itself."""
    try:
        yield
    except Conflict:
        raise
    except ApiError as no:
        into.append(str(no))
        if isinstance(no, ApiUnavailable):
            raise


def _at_their_limits(snapshot: Snapshot) -> frozenset[str]:
    """Return the namespaces whose room is theirs to use: nothing of it is about to move elsewhere."""
    return frozenset(
        space
        for name, member in snapshot.plan.members.items()
        for space, target in member.targets.items()
        if (limit := snapshot.limit(name, space)) is not None and limit.enforced == limit.hard == target
    )
