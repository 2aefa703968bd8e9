"""The HTTP side of a process on the node: /metrics for Prometheus, /healthz and /readyz for kubelet.

Python's own server in a thread: a few requests a minute need no more, and a blocked event loop then shows as a failed
liveness probe instead of a hanging one.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Final, Self

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from cta_group_plugin.errors import BadSetting

_LIVENESS_SECONDS: Final = 4.0
_TEXT: Final = "text/plain; charset=utf-8"

Check = Callable[[], str]
"""Returns what is wrong, in words; empty when nothing is. Called in a thread of the server."""


@dataclass(frozen=True, slots=True)
class ProbeChecks:
    """What the three paths answer."""

    registry: CollectorRegistry
    live: Check
    ready: Check


def on_loop(check: Callable[[], Awaitable[str]], *, limit_seconds: float = _LIVENESS_SECONDS) -> Check:
    """Return a check that runs ``check`` on the event loop of the caller; no answer in time is a problem too."""
    loop = asyncio.get_running_loop()

    async def ask() -> str:
        return await check()

    def from_thread() -> str:
        asked = asyncio.run_coroutine_threadsafe(ask(), loop)
        try:
            return asked.result(limit_seconds)
        except TimeoutError:
            asked.cancel()
            return f"no answer within {limit_seconds:g} s"

    return from_thread


class _Server(ThreadingHTTPServer):
    """Does not ask for the name of its address: nobody reads it, and the codec of names is half a MiB."""

    def server_bind(self) -> None:
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


class ProbeServer:
    """Serves the three paths until closed."""

    def __init__(self, address: str, checks: ProbeChecks) -> None:
        """Listen at ``host:port``; port 0 takes a free one. Raises BadSetting when the address cannot be had."""
        host, _, port = address.rpartition(":")
        try:
            self._server = _Server((host, int(port)), _handler(checks))
        except OSError as error:
            raise BadSetting(f"--metrics-address={address}: {error.strerror or error}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="probes", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port it listens at."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(checks: ProbeChecks) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # of a client that sends nothing
        server_version = "cta-group"

        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/metrics":
                    self._reply(HTTPStatus.OK, generate_latest(checks.registry), CONTENT_TYPE_LATEST)
                case "/healthz":
                    self._tell(checks.live())
                case "/readyz":
                    self._tell(checks.ready())
                case _:
                    self._reply(HTTPStatus.NOT_FOUND, b"/metrics, /healthz and /readyz are here\n", _TEXT)

        def _tell(self, problem: str) -> None:
            status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
            self._reply(status, f"{problem or 'ok'}\n".encode(), _TEXT)

        def _reply(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is inherited
            """Say nothing: probes come every few seconds."""

    return Handler
