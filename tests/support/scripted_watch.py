"""A scripted API server for list and watch over real HTTP, and what follows it: the operator's own client."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler
from kubernetes.client import Configuration

from conditions import until
from cta_group_operator.adapters import wire_cluster
from cta_group_operator.adapters.connection import Connection
from cta_group_operator.adapters.convert_cluster import namespace
from cta_group_operator.adapters.kube import KubeClient
from cta_group_operator.adapters.list_watch import Followed, ListWatch
from cta_group_operator.clock import SystemClock
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import NamespaceView
from cta_group_operator.resources import NAMESPACES
from cta_group_operator.store import Store

Json = dict[str, Any]


def space(name: str, version: int, **labels: Any) -> Json:
    """Return a namespace."""
    return {"metadata": {"name": name, "resourceVersion": str(version), "labels": labels or None}}


def event(kind: str, body: Json) -> bytes:
    """Return one line of a watch."""
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


@dataclass
class ScriptedServer:
    """Gives the pages of the next list and the lines of the next watch; a watch without lines stays open and silent."""

    lists: list[list[Json]] = field(default_factory=list)
    """Pages, in order; a list of several pages names the next one in each."""
    watches: list[list[bytes]] = field(default_factory=list)
    takes_watches: bool = True
    """False: nothing is answered to a watch, not even that it is one."""
    queries: list[dict[str, str]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a list or a watch."""
        self.queries.append(dict(request.query))
        if "watch" in request.query:
            return await self._watch(request)
        page = self.lists[0].pop(0)
        if not self.lists[0]:
            self.lists.pop(0)
        return web.json_response(page)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if not self.takes_watches:
            await asyncio.Event().wait()
        await response.prepare(request)
        if not self.watches:
            with suppress(ConnectionResetError, asyncio.CancelledError):
                await asyncio.Event().wait()
        for line in self.watches.pop(0) if self.watches else ():
            await response.write(line)
        return response

    def positions(self) -> list[str]:
        """Return from which version each watch was asked."""
        return [query["resourceVersion"] for query in self.queries if "watch" in query]


def page(*items: Json, version: int, more: str = "") -> Json:
    """Return one page of a list."""
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)}


@dataclass
class Following:
    """What a test sees."""

    store: Store[NamespaceView]
    metrics: Metrics
    watch: ListWatch[wire_cluster.Namespace, NamespaceView]

    def names(self) -> list[str]:
        """Return what the store holds."""
        return sorted(one.name for one in self.store)

    def count(self, metric: str) -> float:
        """Return a counter of this kind."""
        return self.metrics.registry.get_sample_value(f"cta_group_{metric}_total", {"kind": "Namespace"}) or 0


async def serving(answer: Handler) -> web.AppRunner:
    """Serve namespaces on a free port."""
    application = web.Application()
    application.router.add_get("/api/v1/namespaces", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner


def address_of(runner: web.AppRunner) -> str:
    """Return the URL of what is served."""
    return f"http://127.0.0.1:{runner.addresses[0][1]}"


@asynccontextmanager
async def following(
    server: ScriptedServer, silence_seconds: float = 30.0, timeout_seconds: float = 20.0
) -> AsyncIterator[Following]:
    """Follow namespaces on that server until the block ends."""
    runner = await serving(server.answer)
    connection = Connection(Configuration(host=address_of(runner)))
    store, metrics = Store[NamespaceView](lambda one: ("", one.name)), Metrics("test")
    async with KubeClient(connection, timeout_seconds=timeout_seconds) as client:
        followed = Followed(NAMESPACES, wire_cluster.Namespace, namespace, store, silence_seconds=silence_seconds)
        watch = ListWatch(client, followed, SystemClock(), metrics)
        task = asyncio.ensure_future(watch.run())
        try:
            yield Following(store, metrics, watch)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await runner.cleanup()


async def seen(condition: Callable[[], object]) -> None:
    """Wait for what must come."""
    await until(condition, "what the server told")
