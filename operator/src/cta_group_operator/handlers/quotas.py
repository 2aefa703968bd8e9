"""kopf for CTAQuota: each event goes into a store, and the store tells who must look.

Only ``on.event`` is used: other handlers keep their progress in annotations and finalizers of the object, and nothing
of ours is ever left on an object of the user. A relist of kopf does not tell what was deleted meanwhile, so quotas are
also listed at the start, before anything is decided, and again from time to time.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import kopf

from cta_group_operator.errors import ApiError
from cta_group_operator.handlers.read import Body, read_quota
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock, KubeApi, QuotaView
from cta_group_operator.resources import CTA_QUOTAS
from cta_group_operator.store import Store

_log = EventLog(__name__)

RELIST_SECONDS: Final = 300.0
_PAGE_SIZE: Final = 100
"""A page is decoded in one step during which no thread of the process does anything else."""


class Quotas:
    """Keeps a store like the API server's CTAQuotas."""

    def __init__(self, store: Store[QuotaView], api: KubeApi, clock: Clock, metrics: Metrics) -> None:
        self._store = store
        self._api = api
        self._clock = clock
        self._decode_errors = metrics.decode_errors.labels(kind=CTA_QUOTAS.kind)
        self._lists = metrics.lists.labels(kind=CTA_QUOTAS.kind)
        self._acted = self._heard = clock.monotonic()

    def event_age_seconds(self) -> float:
        """Return how long ago the API server said anything about them."""
        return self._clock.monotonic() - self._heard

    def idle_seconds(self) -> float:
        """Return how long ago a list was last begun, whatever came of it."""
        return self._clock.monotonic() - self._acted

    async def list_all(self) -> None:
        """List them once; raises ApiError when they could not be, NotFound when the kind is not installed."""
        self._acted = self._clock.monotonic()
        self._lists.inc()
        query = {"limit": str(_PAGE_SIZE)}
        views: list[QuotaView] = []
        while True:
            page = await self._api.get(CTA_QUOTAS.path(), query)
            self._heard = self._clock.monotonic()
            views += [view for body in page["items"] if (view := self._view_of(body)) is not None]
            query["continue"] = page["metadata"].get("continue") or ""
            if not query["continue"]:
                break
        self._store.replace(views, page["metadata"]["resourceVersion"])

    async def list_again(self) -> NoReturn:
        """List them from time to time, for deletions that a watch missed."""
        while True:
            await asyncio.sleep(RELIST_SECONDS)
            try:
                await self.list_all()
            except ApiError as failed:
                _log.warning("list_failed", kind=CTA_QUOTAS.kind, cause=failed)

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Have kopf tell of each event."""
        group, _, version = CTA_QUOTAS.group_version.partition("/")
        kopf.on.event(group, version, CTA_QUOTAS.plural, registry=registry, id=CTA_QUOTAS.plural)(self._changed)

    async def _changed(self, event: Mapping[str, Any], **_: Any) -> None:
        self._heard = self._clock.monotonic()
        body = event["object"]
        if event["type"] == "DELETED":
            self._store.remove(("", body["metadata"]["name"]), body["metadata"].get("resourceVersion", ""))
        elif (view := self._view_of(body)) is not None:
            self._store.put(view)

    def _view_of(self, body: Body) -> QuotaView | None:
        """Read one quota; None, and counted, when it cannot be read."""
        try:
            return read_quota(body)
        except ValueError as bad:  # pydantic's ValidationError is one
            self._decode_errors.inc()
            _log.warning("object_not_read", kind=CTA_QUOTAS.kind, name=body["metadata"]["name"], cause=bad)
            return None
