"""Signs that something works at an address of this network namespace, and ports that nobody uses."""

import http.client
import socket
import ssl
from typing import Literal

LOOPBACK = "127.0.0.1"
_TIMEOUT_SECONDS = 2.0


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
    """Return different TCP ports that nobody listens on at the moment."""
    sockets = [socket.create_server((host, 0)) for _ in range(count)]
    ports = [int(listener.getsockname()[1]) for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


def _connection(scheme: Literal["http", "https"], host: str, port: int) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)
    tls = ssl.create_default_context()
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, context=tls, timeout=_TIMEOUT_SECONDS)
