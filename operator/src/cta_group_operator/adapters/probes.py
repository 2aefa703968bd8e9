"""/metrics, /healthz and /readyz."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from cta_group_operator.errors import BadSetting
from cta_group_operator.logs import EventLog

_log = EventLog(__name__)


@asynccontextmanager
async def serve_probes(
    address: str, registry: CollectorRegistry, *, not_ready: Callable[[], str], not_alive: Callable[[], str]
) -> AsyncIterator[None]:
    """Serve at ``host:port`` until the block ends.

    ``not_ready``: why the replica is not ready, empty when it is. ``not_alive``: why it should be started anew.
    """
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    runner = web.AppRunner(_application(registry, not_ready, not_alive), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host.strip("[]"), int(port))
    try:
        await site.start()
    except OSError as taken:
        raise BadSetting(f"--metrics-address {address}: {taken}") from taken
    _log.info("serving_metrics", address=runner.addresses[0])
    try:
        yield
    finally:
        await runner.cleanup()


def _application(
    registry: CollectorRegistry, not_ready: Callable[[], str], not_alive: Callable[[], str]
) -> web.Application:
    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthy(_: web.Request) -> web.Response:
        if reason := not_alive():
            _log.error("not_alive", reason=reason)
        return _answer(reason)

    async def ready(_: web.Request) -> web.Response:
        return _answer(not_ready())

    application = web.Application()
    application.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthy), web.get("/readyz", ready)])
    return application


def _answer(reason: str) -> web.Response:
    return web.Response(text=f"{reason or 'ok'}\n", status=503 if reason else 200)
