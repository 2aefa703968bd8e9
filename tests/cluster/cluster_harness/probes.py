"""Signs that something works at an address of this network namespace."""

import http.client
import socket
import ssl

_TIMEOUT_SECONDS = 2.0


def listens(host: str, port: int) -> bool:
    """Return whether a TCP connection is accepted."""
    try:
        socket.create_connection((host, port), _TIMEOUT_SECONDS).close()
    except OSError:
        return False
    return True


def healthy(host: str, port: int) -> bool:
    """Return whether ``/healthz`` answers 200 over TLS, whoever signed the certificate."""
    tls = ssl.create_default_context()
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(host, port, context=tls, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/healthz")
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
