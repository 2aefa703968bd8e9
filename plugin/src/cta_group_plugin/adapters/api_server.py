"""The Kubernetes API over the standard library's HTTP client.

One small request now and then from every node of a cluster: a Kubernetes client library costs tens of MiB on each of
them. Token and certificate authority are read for each request, because kubelet rotates them under a running process.

Whatever answers there, a request ends in seconds and takes little memory: a server, or something in front of it, that
sends a byte now and then, or never stops, must neither hold a thread for ever nor end this process.
"""

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cta_group_plugin.errors import ApiUnavailable
from cta_group_plugin.plain_files import read_plain

_SILENT_SECONDS: Final = 5.0
"""A process that is asked to end waits for a request on its way."""
_WHOLE_SECONDS: Final = 10.0
"""However slowly an answer comes, it is whole after this, or cut off."""
_MOST_BYTES: Final = 4 << 20
"""No object of Kubernetes is larger than the 1.5 MiB that etcd takes."""


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Where the API is and who we are there."""

    url: str
    """``https://host:port``; plain ``http://`` goes without a token and is for tests."""
    service_account_dir: Path
    """Folder with ``token`` and ``ca.crt``, as kubelet mounts it into a pod."""
    whole_seconds: float = _WHOLE_SECONDS
    """How long an answer may take from its first byte to its last."""

    def request(self, method: str, path: str, body: object, content_type: str) -> tuple[int, bytes]:
        """Make one request on a connection of its own; return status and answer. Blocks. Raises ApiUnavailable."""
        headers = {"Content-Type": content_type, **self._authorization()}
        try:
            connection = self._connection()
            try:
                connection.connect()
                with _cut_off_after(self.whole_seconds, connection.sock):
                    connection.request(method, path, None if body is None else json.dumps(body), headers)
                    answer = connection.getresponse()
                    return answer.status, _whole(answer)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ApiUnavailable(f"{self.url}: {error!r}") from error

    def _connection(self) -> http.client.HTTPConnection:
        url = urlsplit(self.url)
        if url.scheme == "http":
            return http.client.HTTPConnection(url.hostname or "", url.port, timeout=_SILENT_SECONDS)
        tls = ssl.create_default_context(cafile=str(self.service_account_dir / "ca.crt"))
        return http.client.HTTPSConnection(url.hostname or "", url.port, timeout=_SILENT_SECONDS, context=tls)

    def _authorization(self) -> dict[str, str]:
        if self.url.startswith("http:"):
            return {}
        file = self.service_account_dir / "token"
        try:
            token = read_plain(file).decode(errors="replace").strip()
        except OSError as error:
            raise ApiUnavailable(f"{self.url}: the token cannot be read: {error}") from error
        if not (token and token.isascii() and token.isprintable()):  # an error of HTTP's own would show it
            raise ApiUnavailable(f"{self.url}: {file} holds no token: it must be one line of ASCII")
        return {"Authorization": f"Bearer {token}"}


def is_success(code: int) -> bool:
    """Tell whether the API did what was asked; a redirection is the word of something else in its place."""
    return HTTPStatus.OK <= code < HTTPStatus.MULTIPLE_CHOICES


def _whole(answer: http.client.HTTPResponse) -> bytes:
    """Return the body. Raises HTTPException for one that is too long or breaks off."""
    body = answer.read(_MOST_BYTES + 1)
    if len(body) > _MOST_BYTES:
        raise http.client.HTTPException(f"an answer of more than {_MOST_BYTES} bytes")
    if answer.length:
        raise http.client.IncompleteRead(body[:0], answer.length)
    return body


@contextmanager
def _cut_off_after(seconds: float, connected: socket.socket) -> Iterator[None]:
    """End the connection when the block takes too long; raises TimeoutError then."""
    is_over = threading.Event()

    def cut() -> None:
        is_over.set()
        with suppress(OSError):
            socket.socket.shutdown(connected, socket.SHUT_RDWR)  # not TLS' own, which would wait for an answer

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException):
        if not is_over.is_set():
            raise
    finally:
        timer.cancel()
    if is_over.is_set():
        raise TimeoutError(f"no whole answer within {seconds:g} s")
