"""One HTTP/1.1 request over a connection of its own: what a server of the Kubernetes API answers to a small request.

``http.client`` reads headers with the e-mail package, which costs more memory than the rest of this plugin's adapters
(docs/decisions/0003). Framing is that of RFC 9112: a length, chunks, or the end of the connection. Blocks.
"""

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final

_LONGEST_LINE: Final = 65536
_MOST_HEADERS: Final = 100
_LARGEST_ANSWER_BYTES: Final = 16 << 20
_HTTPS_PORT: Final = 443
_HTTP_PORT: Final = 80
_OK: Final = 200
_WITHOUT_BODY: Final = (204, 304)


class BadAnswer(Exception):
    """What came back is not HTTP/1.x, or ended too early."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom to ask."""

    host: str
    port: int | None
    """``None``: the scheme's own."""
    tls: ssl.SSLContext | None = None
    """``None``: plain HTTP."""
    timeout_seconds: float = 5.0
    """For the connection and for each wait for bytes."""


def request(peer: Peer, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
    """Make one request and return status and body of the answer. Raises OSError and BadAnswer."""
    with _connected(peer) as connection, connection.makefile("rb") as stream:
        connection.sendall(_head(peer, method, target, headers, len(body)) + body)
        return _answer(stream)


@contextmanager
def _connected(peer: Peer) -> Iterator[socket.socket]:
    port = peer.port or (_HTTPS_PORT if peer.tls else _HTTP_PORT)
    with socket.create_connection((peer.host, port), timeout=peer.timeout_seconds) as plain:
        if peer.tls is None:
            yield plain
            return
        with peer.tls.wrap_socket(plain, server_hostname=peer.host) as connection:
            yield connection


def _head(peer: Peer, method: str, target: str, headers: Mapping[str, str], length: int) -> bytes:
    host = f"[{peer.host}]" if ":" in peer.host else peer.host
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}:{peer.port}" if peer.port else f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += ["Accept: application/json", f"Content-Length: {length}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _answer(stream: BinaryIO) -> tuple[int, bytes]:
    while (status := _status(_line(stream))) < _OK:
        _headers(stream)  # 100 Continue and its kind come before the answer
    headers = _headers(stream)
    if status in _WITHOUT_BODY:
        return status, b""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return status, b"".join(_chunks(stream))
    if (length := headers.get("content-length")) is not None:
        return status, _exactly(stream, _number(length, 10))
    return status, stream.read(_LARGEST_ANSWER_BYTES)


def _status(line: str) -> int:
    version, _, rest = line.partition(" ")
    if not version.startswith("HTTP/1."):
        raise BadAnswer(f"the answer begins with {line[:60]!r}, which is not HTTP/1.x")
    return _number(rest[:3], 10)


def _headers(stream: BinaryIO) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        if not (line := _line(stream)):
            return headers
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    raise BadAnswer(f"the answer has more than {_MOST_HEADERS} headers")


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    left = _LARGEST_ANSWER_BYTES
    while size := _number(_line(stream).partition(";")[0], 16):
        left -= size
        yield _exactly(stream, size if left >= 0 else _LARGEST_ANSWER_BYTES + 1)
        _line(stream)
    _headers(stream)  # trailers, or only the empty line behind the last chunk


def _exactly(stream: BinaryIO, size: int) -> bytes:
    if size > _LARGEST_ANSWER_BYTES:
        raise BadAnswer(f"the answer has more than {_LARGEST_ANSWER_BYTES} bytes")
    if len(data := stream.read(size)) < size:
        raise BadAnswer(f"the answer ended after {len(data)} of {size} bytes")
    return data


def _line(stream: BinaryIO) -> str:
    line = stream.readline(_LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise BadAnswer("the answer ended in its head" if len(line) < _LONGEST_LINE else "the answer has a long line")
    return line.decode("latin-1").rstrip("\r\n")


def _number(text: str, base: int) -> int:
    try:
        number = int(text.strip(), base)
    except ValueError:
        number = -1
    if number < 0:
        raise BadAnswer(f"the answer has {text[:20]!r} where a number should be")
    return number
