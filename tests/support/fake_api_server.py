"""A fake Kubernetes API over HTTP, as far as the plugin uses it: Nodes, server-side apply of one kind, new events."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from cluster_harness.waiting import PATIENCE_SECONDS


@dataclass
class FakeApiServer:
    """Remembers the objects and every request; answers with an error while told to."""

    url: str = ""
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    node_uids: dict[str, str | None] = field(default_factory=dict)
    """Of Nodes whose uid is not ``uid-of-<name>``; ``None``: there is no such Node."""
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Events by namespace and name."""
    annotations: dict[str, str] = field(default_factory=dict)
    """What people wrote on every object."""
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Path, content type and query of each request."""
    error: int | None = None
    token: str | None = None
    """The only one that is let in; ``None``: everybody is."""
    has_kind: bool = True
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def apply(self, request: web.Request) -> web.Response:
        """Create or change the object."""
        body = json.loads(await request.read())
        async with self._changed:
            self.requests.append((request.path, request.content_type, dict(request.query)))
            if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
                return web.json_response({"kind": "Status", "message": "Unauthorized"}, status=401)
            response = self._answer(request.match_info["name"], request.path.endswith("/status"), body)
            self._changed.notify_all()
        return response

    async def read_node(self, request: web.Request) -> web.Response:
        """Return a Node."""
        name = request.match_info["name"]
        if self.error:
            return web.json_response({"kind": "Status", "message": "told to fail"}, status=self.error)
        uid = self.node_uids.get(name, f"uid-of-{name}")
        if uid is None:
            return web.json_response({"kind": "Status", "message": "not found"}, status=404)
        return web.json_response({"metadata": {"name": name, "uid": uid}})

    async def delete(self, request: web.Request) -> web.Response:
        """Delete the object, if it is the one that is meant."""
        wanted = json.loads(await request.read())["preconditions"]["uid"]
        async with self._changed:
            self.requests.append((request.path, "DELETE", dict(request.query)))
            kept = self.objects.get(request.match_info["name"])
            if kept is None or kept["metadata"]["uid"] != wanted:
                return web.json_response({"kind": "Status", "message": "the UID differs"}, status=409)
            del self.objects[request.match_info["name"]]
            self._changed.notify_all()
        return web.json_response({"kind": "Status", "status": "Success"})

    async def create_event(self, request: web.Request) -> web.Response:
        """Create an event; one by its name is there already most often."""
        body = json.loads(await request.read())
        async with self._changed:
            self.requests.append((request.path, request.content_type, dict(request.query)))
            self._changed.notify_all()
        if self.error:
            return web.json_response({"kind": "Status", "message": "told to fail"}, status=self.error)
        key = f"{request.match_info['namespace']}/{body['metadata']['name']}"
        if key in self.events:
            return web.json_response({"kind": "Status", "message": "already exists"}, status=409)
        self.events[key] = body
        return web.json_response(body, status=201)

    async def until_requests(self, count: int) -> None:
        """Wait until so many requests came."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)

    def _answer(self, name: str, is_status: bool, body: dict[str, Any]) -> web.Response:  # noqa: FBT001
        if self.error:
            return web.json_response({"kind": "Status", "message": "told to fail"}, status=self.error)
        if not self.has_kind or (is_status and name not in self.objects):
            return web.json_response({"kind": "Status", "message": "not found"}, status=404)
        kept = self.objects.setdefault(name, {"metadata": {"uid": f"object-{len(self.requests)}"}})
        if is_status:
            kept["status"] = body["status"]
        else:
            kept["metadata"] |= body["metadata"]
        return web.json_response({**kept, "metadata": {**kept["metadata"], "annotations": self.annotations}})


@asynccontextmanager
async def fake_api_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeApiServer]:
    """Serve on a free port of this machine, over TLS when given."""
    api = FakeApiServer()
    app = web.Application()
    path = "/apis/ctagroup.dev/v1alpha1/ctanodes/{name}"
    app.router.add_patch(path, api.apply)
    app.router.add_delete(path, api.delete)
    app.router.add_get("/api/v1/nodes/{name}", api.read_node)
    app.router.add_patch(f"{path}/status", api.apply)
    app.router.add_post("/api/v1/namespaces/{namespace}/events", api.create_event)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        host, port = runner.addresses[0][:2]
        api.url = f"{'https' if tls else 'http'}://{host}:{port}"
        yield api
    finally:
        await runner.cleanup()
