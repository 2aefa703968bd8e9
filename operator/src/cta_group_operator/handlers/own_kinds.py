"""kopf for CTAQuota, CTANode and CTAWorkload: each event goes into a store, and the store tells who must look.

Only ``on.event`` is used: other handlers keep their progress in annotations and finalizers of the object, and nothing
of ours is ever left on an object of the user. A relist of kopf does not tell what was deleted meanwhile, so the kinds
are also listed at the start, before anything is decided, and again from time to time.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NoReturn, TypeVar

import kopf

from cta_group_operator.errors import ApiError
from cta_group_operator.handlers.read import Body, read_cta_node, read_quota, read_workload
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.one_by_one import OneByOne
from cta_group_operator.ports import Clock, KubeApi
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import CTA_NODES, CTA_QUOTAS, CTA_WORKLOADS, Resource
from cta_group_operator.store import Store, Versioned

_log = EventLog(__name__)

RELIST_SECONDS: Final = 300.0
_PAGE_SIZE: Final = 100
"""A page is decoded in one step during which no thread of the process does anything else."""
View = TypeVar("View", bound=Versioned)


@dataclass(frozen=True, slots=True)
class OwnKind(Generic[View]):
    """One kind, how it is read and where it goes."""

    resource: Resource
    read: Callable[[Body], View | None]
    store: Store[View]

    def take(self, body: Body, metrics: Metrics, *, deleted: bool) -> None:
        """Take one object as the API server told it."""
        meta = body["metadata"]
        view = None if deleted else self.view_of(body, metrics)
        if view is not None:
            self.store.put(view)
        elif deleted:
            self.store.remove((meta.get("namespace", ""), meta["name"]), meta.get("resourceVersion", ""))

    def view_of(self, body: Body, metrics: Metrics) -> View | None:
        """Read one object; None, and counted, when it cannot be read."""
        try:
            return self.read(body)
        except ValueError as bad:  # pydantic's ValidationError is one
            metrics.decode_errors.labels(kind=self.resource.kind).inc()
            _log.warning("object_not_read", kind=self.resource.kind, name=body["metadata"]["name"], cause=bad)
            return None


class OwnKinds:
    """The three kinds together."""

    def __init__(self, view: ClusterView, api: KubeApi, clock: Clock, metrics: Metrics) -> None:
        self._api = api
        self._clock = clock
        self._metrics = metrics
        self._kinds: tuple[OwnKind[Any], ...] = (
            OwnKind(CTA_QUOTAS, read_quota, view.quotas),
            OwnKind(CTA_NODES, read_cta_node, view.cta_nodes),
            OwnKind(CTA_WORKLOADS, read_workload, view.workloads),
        )
        for kind in self._kinds:
            metrics.decode_errors.labels(kind=kind.resource.kind)
            metrics.lists.labels(kind=kind.resource.kind)
        self._acted = clock.monotonic()
        self._heard = {kind.resource.kind: clock.monotonic() for kind in self._kinds}

    def event_ages_seconds(self) -> dict[str, float]:
        """Return for each kind how long ago the API server said anything about it."""
        now = self._clock.monotonic()
        return {kind: now - heard for kind, heard in self._heard.items()}

    def idle_seconds(self) -> float:
        """Return how long ago a list was last begun, whatever came of it."""
        return self._clock.monotonic() - self._acted

    async def list_all(self) -> None:
        """List every kind once; raises ApiError for one that could not be, NotFound when the CRDs are not installed."""
        self._acted = self._clock.monotonic()
        turns = OneByOne()
        for kind in self._kinds:
            with turns.one(kind.resource.kind):
                await self._list(kind)
        turns.end()

    async def list_again(self) -> NoReturn:
        """List every kind from time to time, for deletions that a watch missed."""
        while True:
            await asyncio.sleep(RELIST_SECONDS)
            try:
                await self.list_all()
            except ApiError as failed:
                _log.warning("list_failed", cause=failed)

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Add one handler for each kind."""
        for kind in self._kinds:
            group, _, version = kind.resource.group_version.partition("/")
            kopf.on.event(group, version, kind.resource.plural, registry=registry, id=kind.resource.plural)(
                self._handler(kind)
            )

    def _handler(self, kind: OwnKind[Any]) -> Any:
        async def changed(event: Mapping[str, Any], **_: Any) -> None:
            self._heard[kind.resource.kind] = self._clock.monotonic()
            kind.take(event["object"], self._metrics, deleted=event["type"] == "DELETED")

        return changed

    async def _list(self, kind: OwnKind[View]) -> None:
        self._metrics.lists.labels(kind=kind.resource.kind).inc()
        query = {"limit": str(_PAGE_SIZE)}
        views: list[View] = []
        while True:
            page = await self._api.get(kind.resource.path(), query)
            self._heard[kind.resource.kind] = self._clock.monotonic()
            views += [view for body in page["items"] if (view := kind.view_of(body, self._metrics)) is not None]
            query["continue"] = page["metadata"].get("continue") or ""
            if not query["continue"]:
                break
        kind.store.replace(views, page["metadata"]["resourceVersion"])
