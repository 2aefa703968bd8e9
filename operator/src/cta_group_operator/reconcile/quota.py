"""CTAQuota becomes ResourceQuotas: read the snapshot, share, write what may be written now, tell the status once."""

from typing import Any

from cta_group_core.conditions import merge_conditions
from cta_group_core.names import LABEL_QUOTA, QUOTA_OBJECT_NAME
from cta_group_core.quota import QuotaStatus, quota_key
from cta_group_core.quota_split import Write, split
from cta_group_operator.errors import Forbidden, NotFound, Rejected
from cta_group_operator.logs import EventLog
from cta_group_operator.ports import Clock, KubeApi, LimitView, QuotaView
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.quota_scope import Keepers, Scope, scope_of
from cta_group_operator.reconcile.quota_status import quota_status
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.written import LastWritten
from cta_group_operator.resources import CTA_QUOTAS, RESOURCE_QUOTAS

_log = EventLog(__name__)


class QuotaReconciler:
    """One round a CTAQuota."""

    def __init__(self, view: ClusterView, api: KubeApi, clock: Clock, denials: Denials, resource_name: str) -> None:
        self._view = view
        self._api = api
        self._clock = clock
        self._denials = denials
        self._keepers = Keepers(view)
        self._resource_name = resource_name
        self._written = LastWritten[QuotaStatus]()

    async def reconcile(self, name: str) -> None:
        """Bring ResourceQuotas and status of one CTAQuota to what they should be, as far as is safe now."""
        quota = self._view.quotas.get(name)
        if quota is None:
            await self._remove_all(name)
            return
        scope = scope_of(quota, self._view, self._keepers, self._denials.by_namespace())
        plan = split(quota.spec.groups, scope.shares, leaving=scope.leaving_held)
        refused = [*await self._let_go(scope), *await self._apply(name, scope, plan.writes)]
        if plan.writes and not refused:
            return  # the writes come back as events, and the round after them tells the status
        await self._tell(quota, quota_status(quota, scope, plan, refused, self._resource_name))

    async def _let_go(self, scope: Scope) -> list[str]:
        """Delete limits in namespaces that left. One that another CTAQuota keeps now is left for that to take over."""
        refused: list[str] = []
        for limit in scope.leaving:
            namespace = self._view.namespaces.get(limit.ref.namespace)
            if namespace is None or namespace.deleting or self._keepers.keeper(namespace.name) is not None:
                continue
            refused += await self._delete(limit)
        return refused

    async def _remove_all(self, name: str) -> None:
        """Delete what a CTAQuota left behind, after asking whether it is really gone."""
        limits = self._view.limits_of(name)
        if not limits:
            return
        try:
            await self._api.get(CTA_QUOTAS.path(name=name))
        except NotFound:
            await self._let_go(Scope((), {}, leaving=limits))

    async def _apply(self, name: str, scope: Scope, writes: tuple[Write, ...]) -> list[str]:
        refused: list[str] = []
        for write in writes:
            try:
                await self._write(name, write, scope.limits.get(write.namespace))
            except (Rejected, Forbidden, NotFound) as no:
                refused.append(str(no))
                _log.warning("quota_write_refused", quota=name, namespace=write.namespace, cause=no)
            else:
                _log.info("quota_written", quota=name, namespace=write.namespace, groups=write.hard)
        return refused

    async def _write(self, name: str, write: Write, limit: LimitView | None) -> None:
        body = limit_body(name, write, self._resource_name)
        if limit is None:
            await self._api.create(RESOURCE_QUOTAS.path(write.namespace), body)
            return
        body["metadata"]["resourceVersion"] = limit.resource_version
        await self._api.merge_patch(RESOURCE_QUOTAS.path(write.namespace, QUOTA_OBJECT_NAME), body)

    async def _delete(self, limit: LimitView) -> list[str]:
        try:
            await self._api.delete(RESOURCE_QUOTAS.path(limit.ref.namespace, limit.ref.name), limit.resource_version)
        except NotFound:
            return []
        except (Rejected, Forbidden) as no:
            return [str(no)]
        _log.info("quota_deleted", quota=limit.quota, namespace=limit.ref.namespace)
        return []

    async def _tell(self, quota: QuotaView, status: QuotaStatus) -> None:
        key = ("", quota.ref.name)
        before = self._written.current(key, quota.status, quota.resource_version)
        conditions = merge_conditions(before.conditions, status.conditions, self._clock.utc_text())
        status = status.model_copy(update={"conditions": conditions})
        if status == before:
            return
        path = CTA_QUOTAS.path(name=quota.ref.name, subresource="status")
        self._written.remember(key, status, await self._api.merge_patch(path, {"status": status.as_api()}))


def limit_body(name: str, write: Write, resource_name: str) -> dict[str, Any]:
    """Return the ResourceQuota that limits one namespace; also the merge patch that makes it so."""
    return {
        "apiVersion": RESOURCE_QUOTAS.group_version,
        "kind": RESOURCE_QUOTAS.kind,
        "metadata": {
            "name": QUOTA_OBJECT_NAME,
            "namespace": write.namespace,
            "labels": {LABEL_QUOTA: name, "app.kubernetes.io/managed-by": "cta-group-operator"},
        },
        "spec": {"hard": {quota_key(resource_name): str(write.hard)}},
    }
