"""The HTTP side of a process on the node: /metrics for Prometheus, /healthz and /readyz for kubelet.

In threads: a blocked event loop then shows as a failed liveness probe instead of a hanging one. A few requests a minute
need no more than GET and one answer a connection; ``http.server`` costs more memory than that (docs/decisions/0003).
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from io import BufferedIOBase
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Final, Self

from cta_group_plugin.errors import BadSetting
from cta_group_plugin.exposition import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

_LIVENESS_SECONDS: Final = 4.0
_TEXT: Final = "text/plain; charset=utf-8"
_LONGEST_LINE: Final = 8192
_MOST_HEADERS: Final = 100

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


class _Server(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


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


def _handler(checks: ProbeChecks) -> type[StreamRequestHandler]:
    class Handler(StreamRequestHandler):
        timeout = 10  # of a client that sends nothing

        def handle(self) -> None:
            # Who asks may go away at any time, and has its own reasons.
            with suppress(OSError):
                self._reply(*_answer(checks, _target(self.rfile)))

        def _reply(self, status: HTTPStatus, body: bytes, content_type: str = _TEXT) -> None:
            head = (
                f"HTTP/1.1 {status.value} {status.phrase}",
                f"Content-Type: {content_type}",
                f"Content-Length: {len(body)}",
                "Connection: close",
            )
            self.wfile.write("\r\n".join((*head, "", "")).encode() + body)

    return Handler


def _target(stream: BufferedIOBase) -> str:
    """Return what a request asks to GET, its headers read and left; empty when it asks anything else."""
    method, _, rest = stream.readline(_LONGEST_LINE).decode("latin-1").partition(" ")
    target, _, version = rest.partition(" ")
    for _ in range(_MOST_HEADERS):
        if not stream.readline(_LONGEST_LINE).strip():
            return target if method == "GET" and version.startswith("HTTP/1.") else ""
    return ""


def _answer(checks: ProbeChecks, target: str) -> tuple[HTTPStatus, bytes, str]:
    match target.partition("?")[0]:
        case "":
            return HTTPStatus.BAD_REQUEST, b"ask GET /metrics, /healthz or /readyz over HTTP/1.1\n", _TEXT
        case "/metrics":
            return HTTPStatus.OK, generate_latest(checks.registry), CONTENT_TYPE_LATEST
        case "/healthz":
            return _verdict(checks.live())
        case "/readyz":
            return _verdict(checks.ready())
    return HTTPStatus.NOT_FOUND, b"/metrics, /healthz and /readyz are here\n", _TEXT


def _verdict(problem: str) -> tuple[HTTPStatus, bytes, str]:
    status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
    return status, f"{problem or 'ok'}\n".encode(), _TEXT
