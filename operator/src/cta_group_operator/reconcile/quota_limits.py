"""ResourceQuotas of the operator: read afresh before anything moves, written at the version that was decided upon.

The API server goes by ``status.hard``, which Kubernetes' quota controller copies from ``spec.hard`` some time later,
and between the two a pod may come in that the new limit does not cover. So a limit is lowered where it is enforced
first, at the version whose ``status.used`` was read, and in the spec right afterwards, at the version that this gave.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cta_group_core.names import LABEL_QUOTA, QUOTA_OBJECT_NAME
from cta_group_core.quota import quota_key
from cta_group_core.quota_plan import Write
from cta_group_operator.errors import Conflict, NotFound
from cta_group_operator.listing import items
from cta_group_operator.logs import EventLog
from cta_group_operator.ports import Json, KubeApi, LimitView
from cta_group_operator.resources import RESOURCE_QUOTAS

_log = EventLog(__name__)

ReadLimit = Callable[[Json], LimitView | None]
"""Makes a view of a ResourceQuota as the API server gives it."""


class LimitWriter:
    """Writes one object a call. Raises ApiError; Conflict when it changed since it was read."""

    def __init__(self, api: KubeApi, read: ReadLimit, resource_name: str) -> None:
        self._api = api
        self._read = read
        self._key = quota_key(resource_name)

    async def read_all(self) -> list[LimitView]:
        """Return every ResourceQuota of a CTAQuota as the API server has it now.

        What was watched may be behind, of this process's own writes too, and a raise that is decided on an old limit
        gives away what somebody holds.
        """
        found = items(self._api, RESOURCE_QUOTAS.path(), {"labelSelector": LABEL_QUOTA})
        return [view async for body in found if (view := self._read(body)) is not None]

    async def write(self, write: Write, limit: LimitView | None) -> None:
        """Set the limit of a namespace; ``limit`` is its ResourceQuota as it was decided upon."""
        body = self._body(write)
        if limit is None:
            await self._create(write, body)
        else:
            version = limit.resource_version
            if limit.enforced is not None and limit.enforced > write.hard:
                version = await self.enforce(limit, write.hard)
            body["metadata"]["resourceVersion"] = version
            await self._api.merge_patch(_path(limit), body)
        _log.info("quota_written", quota=write.quota, namespace=write.namespace, groups=write.hard)

    async def _create(self, write: Write, body: Json) -> None:
        """Make a limit that is in force at once: without ``status.hard`` it limits nothing until somebody has counted.

        With it, and nothing counted yet, the API server refuses pods ("status unknown for quota").
        """
        made = await self._api.create(RESOURCE_QUOTAS.path(write.namespace), body)
        path = RESOURCE_QUOTAS.path(write.namespace, QUOTA_OBJECT_NAME)
        with suppress(Conflict, NotFound):  # it is counted already, or somebody else deleted it
            await self._set_enforced(path, made["metadata"]["resourceVersion"], write.hard)

    async def enforce(self, limit: LimitView, hard: int) -> str:
        """Set what the API server goes by; return the version that this gave."""
        return await self._set_enforced(_path(limit), limit.resource_version, hard)

    async def _set_enforced(self, path: str, version: str, hard: int) -> str:
        body = {"metadata": {"resourceVersion": version}, "status": {"hard": {self._key: str(hard)}}}
        answer = await self._api.merge_patch(f"{path}/status", body)
        given: str = answer["metadata"]["resourceVersion"]
        return given

    async def delete(self, limit: LimitView) -> None:
        """Delete a ResourceQuota, if it is there."""
        with suppress(NotFound):
            await self._api.delete(_path(limit), limit.resource_version)
            _log.info("quota_deleted", quota=limit.quota, namespace=limit.ref.namespace)

    def _body(self, write: Write) -> dict[str, Any]:
        """Return the ResourceQuota that limits one namespace; also the merge patch that makes it so."""
        return {
            "apiVersion": RESOURCE_QUOTAS.group_version,
            "kind": RESOURCE_QUOTAS.kind,
            "metadata": {
                "name": QUOTA_OBJECT_NAME,
                "namespace": write.namespace,
                "labels": {LABEL_QUOTA: write.quota, "app.kubernetes.io/managed-by": "cta-group-operator"},
            },
            "spec": {"hard": {self._key: str(write.hard)}},
        }


def _path(limit: LimitView) -> str:
    return RESOURCE_QUOTAS.path(limit.ref.namespace, limit.ref.name)
