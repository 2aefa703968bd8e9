"""Signs that something works at an address of this network namespace, and ports that nobody uses."""

import contextlib
import http.client
import random
import socket
import ssl
from pathlib import Path
from typing import Literal

LOOPBACK = "127.0.0.1"
_TIMEOUT_SECONDS = 2.0
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _USUAL_BEGIN = 10240, 32768
_LEAST_CHOICE = 4096
"""Fewer ports than these below the kernel's own range would be taken by two at once too often."""


def healthy(scheme: Literal["http", "https"], host: str, port: int, path: str) -> bool:
    """Return whether the path is answered with 200, whoever signed the server's certificate."""
    connection = _connection(scheme, host, port)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def free_ports(host: str, count: int) -> list[int]:
    """Return different TCP ports that nobody listens on at the moment, by chance.

    The kernel gives none of them away by itself, neither to a connection nor to who asks for any port, so that a port
    is still free when a program begins to listen there, and again when it is started anew.
    """
    begin = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else _USUAL_BEGIN
    end = begin if begin >= _LOWEST + _LEAST_CHOICE else _USUAL_BEGIN
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(_LOWEST, end)  # noqa: S311 - no secret
        if port not in found and _is_free(host, port):
            found.append(port)
    return found


def _is_free(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_server((host, port)):
        return True
    return False


def _connection(scheme: Literal["http", "https"], host: str, port: int) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)
    tls = ssl.create_default_context()
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, context=tls, timeout=_TIMEOUT_SECONDS)
