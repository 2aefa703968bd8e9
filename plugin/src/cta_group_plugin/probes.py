"""The HTTP side of a process on the node: /metrics for Prometheus, /healthz and /readyz for kubelet.

Python's own server in a thread: a few requests a minute need no more, and a blocked event loop then shows as a failed
liveness probe instead of a hanging one.
"""

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Final, Self

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from cta_group_plugin.errors import BadSetting
from cta_group_plugin.logs import EventLog

_log = EventLog(__name__)

_LIVENESS_SECONDS: Final = 4.0
_MOST_CONNECTIONS: Final = 32
"""At the same time: kubelet and Prometheus have one or two."""
_BREATH_SECONDS: Final = 0.1
_TEXT: Final = "text/plain; charset=utf-8"

Connection = socket.socket | tuple[bytes, socket.socket]
"""As ``socketserver`` has it."""

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
    """Serves whoever came last: the port is open to every pod, and each connection costs a thread and a descriptor."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: dict[Connection, None] = {}
        self._one_at_a_time = threading.Lock()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Do not ask for the name of the address: nobody reads it, and the codec of names is half a MiB."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        """Take a connection; without a descriptor for it, not at once again."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_BREATH_SECONDS)
            raise

    def process_request(self, request: Connection, client_address: Any) -> None:
        """Serve a connection in a thread of its own, and end the oldest where there are too many."""
        with self._one_at_a_time:
            self._open[request] = None
            oldest = next(iter(self._open)) if len(self._open) > _MOST_CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
                _end(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Connection) -> None:
        """Close a connection."""
        with self._one_at_a_time:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Connection, client_address: Any) -> None:  # noqa: ARG002 - the names are inherited
        """Log what went wrong, in the form of every log; who asked may have gone, which is nothing."""
        failure = sys.exception()
        if not isinstance(failure, OSError):
            _log.error("probe_failed", cause=failure)


def _end(connection: Connection) -> None:
    one = connection[1] if isinstance(connection, tuple) else connection
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


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
