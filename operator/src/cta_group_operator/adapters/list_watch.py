"""Follows one kind of objects: a list in pages, then a watch that goes on where it was, in little memory.

Objects are decoded into structs of the few fields that are needed and converted at once; what has nothing to do with
groups is dropped. A watch is short and opened again and again: the API server sends no bookmark for a kind of
which nothing ever happened, and none at all for events, so silence is no error, and whether anybody is there shows when
the next watch is answered. One whose position the API server has forgotten (410) leads to a new list, whose
difference tells what was deleted meanwhile.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NoReturn, TypeVar

import aiohttp
import msgspec

from cta_group_operator.adapters.kube import KubeClient, error_of
from cta_group_operator.adapters.wire import Metadata
from cta_group_operator.errors import ApiError, ApiUnavailable, Gone
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock
from cta_group_operator.resources import Resource
from cta_group_operator.settings import WATCH_SECONDS
from cta_group_operator.store import Store, Versioned

_log = EventLog(__name__)

PAGE_SIZE: Final = 500
_GRACE_SECONDS: Final = 5.0
"""A watch that is this late with its end is given up."""
_BACKOFF_SECONDS: Final = (0.2, 5.0)

Struct = TypeVar("Struct", bound=msgspec.Struct)
View = TypeVar("View", bound=Versioned)


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    next_page: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None = None


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _OnlyMetadata(msgspec.Struct):
    metadata: Metadata


class _Code(msgspec.Struct):
    code: int = 0


@dataclass(frozen=True, slots=True)
class Followed(Generic[Struct, View]):
    """What is followed, and where it goes."""

    resource: Resource
    struct: type[Struct]
    convert: Callable[[Struct], View | None]
    """None: the object is not kept. ValueErrors count as objects that cannot be read."""
    store: Store[View]
    query: Mapping[str, str] = field(default_factory=dict)
    """``labelSelector`` or ``fieldSelector``."""
    watch_seconds: int = WATCH_SECONDS
    """After so long the API server ends a watch."""
    page_size: int = PAGE_SIZE
    """Objects of a list that are asked for at once; they are read in one step of the loop."""
    silence_seconds: float | None = None
    """A watch that says nothing for so long is opened again; None: a little after its end."""


class ListWatch(Generic[Struct, View]):
    """Keeps a store like the API server's objects of one kind, for ever."""

    def __init__(
        self,
        client: KubeClient,
        followed: Followed[Struct, View],
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._client = client
        self._what = followed
        self._silence_seconds = followed.silence_seconds or followed.watch_seconds + _GRACE_SECONDS
        self._path = followed.resource.path()
        self._clock = clock
        self._metrics = metrics
        self._page = msgspec.json.Decoder(_Page)
        self._event = msgspec.json.Decoder(_WatchEvent)
        self._object: msgspec.json.Decoder[Any] = msgspec.json.Decoder(followed.struct)
        self._heard = self._acted = clock.monotonic()
        self.synced = asyncio.Event()
        metrics.decode_errors.labels(kind=self.kind)
        metrics.lists.labels(kind=self.kind)

    @property
    def kind(self) -> str:
        """Name of the kind."""
        return self._what.resource.kind

    def event_age_seconds(self) -> float:
        """Return how long ago the API server said anything about this kind, or took a question about it."""
        return self._clock.monotonic() - self._heard

    def idle_seconds(self) -> float:
        """Return how long ago this loop last did anything: asked, got an answer, or gave a question up."""
        return self._clock.monotonic() - self._acted

    async def run(self) -> NoReturn:
        """List, watch, and begin again when the position is lost."""
        while True:
            version = await self._list_until_it_works()
            self.synced.set()
            await self._watch_until_gone(version)

    async def _list_until_it_works(self) -> str:
        delay, longest = _BACKOFF_SECONDS
        while True:
            self._acted = self._clock.monotonic()
            try:
                return await self._list()
            except ApiError as failed:
                _log.warning("list_failed", kind=self.kind, cause=failed, retry_seconds=delay)
                await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
                delay = min(longest, delay * 2)

    async def _list(self) -> str:
        self._metrics.lists.labels(kind=self.kind).inc()
        views: list[View] = []
        query = {**self._what.query, "limit": str(self._what.page_size)}
        while True:
            page = self._read_page(await self._client.page(self._path, query))
            self._hear()
            views += [view for raw in page.items or () if (view := self._view(raw)) is not None]
            if not page.metadata.next_page:
                break
            query["continue"] = page.metadata.next_page
            await asyncio.sleep(0)
        self._what.store.replace(views, page.metadata.resource_version)
        return page.metadata.resource_version

    def _read_page(self, text: bytes) -> _Page:
        try:
            return self._page.decode(text)
        except msgspec.MsgspecError as bad:
            raise ApiUnavailable(f"LIST {self._path}: not what a list says: {bad}") from bad

    async def _watch_until_gone(self, version: str) -> None:
        position = [version]
        delay, longest = _BACKOFF_SECONDS
        while True:
            before = position[0]
            self._acted = self._clock.monotonic()
            try:
                await self._watch(position)
            except Gone:
                _log.info("watch_position_lost", kind=self.kind)
                return
            except ApiError as failed:
                _log.warning("watch_failed", kind=self.kind, cause=failed, retry_seconds=delay)
                delay = _BACKOFF_SECONDS[0] if position[0] != before else min(longest, delay * 2)
                await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - jitter

    async def _watch(self, position: list[str]) -> None:
        """Take events until the server ends the watch. ``position`` holds the version to go on from."""
        query = {
            **self._what.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": position[0],
            "timeoutSeconds": str(self._what.watch_seconds),
        }
        async with aclosing(self._lines(query)) as lines:
            async for line in lines:
                self._hear()
                try:
                    self._take(line, position)
                except msgspec.MsgspecError as bad:
                    raise ApiUnavailable(f"WATCH {self._path}: not what a watch says: {bad}") from bad

    async def _lines(self, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Yield what comes until the server ends it, or nothing came for too long."""
        rest = b""
        async with self._client.stream("GET", self._path, query, read_timeout_seconds=None) as answer:
            self._hear()
            while chunk := await self._chunk(answer.content):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line:
                        yield line

    def _hear(self) -> None:
        self._heard = self._acted = self._clock.monotonic()

    async def _chunk(self, content: aiohttp.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(self._silence_seconds):
                return await content.readany()
        except TimeoutError:
            _log.debug("watch_silent", kind=self.kind, seconds=self._silence_seconds)
            return b""

    def _take(self, line: bytes, position: list[str]) -> None:
        event = self._event.decode(line)
        if event.type == "ERROR":
            code = msgspec.json.decode(event.object, type=_Code).code
            raise error_of("WATCH", self._path, code, bytes(event.object))
        meta = msgspec.json.decode(event.object, type=_OnlyMetadata).metadata
        position[0] = meta.resource_version
        if event.type == "BOOKMARK":
            return
        view = None if event.type == "DELETED" else self._view(event.object)
        if view is None:
            self._what.store.remove((meta.namespace, meta.name), meta.resource_version)
        else:
            self._what.store.put(view)

    def _view(self, raw: msgspec.Raw) -> View | None:
        try:
            return self._what.convert(self._object.decode(raw))
        except ValueError as bad:  # msgspec's ValidationError and pydantic's are ValueErrors
            self._metrics.decode_errors.labels(kind=self.kind).inc()
            _log.warning("object_not_read", kind=self.kind, cause=bad)
            return None
