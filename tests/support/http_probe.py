"""Asks a process under test over HTTP."""

import socket
import urllib.error
import urllib.request


def free_address() -> str:
    """Return an address of this machine that nothing listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host, port = probe.getsockname()
    return f"{host}:{port}"


def fetch(url: str) -> str:
    """Return what is answered. Raises OSError, also for a status that is an error."""
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - the process under test
        body: bytes = answer.read()
    return body.decode()


def fetch_status(url: str) -> tuple[int, str]:
    """Return the status and what is answered, also for a status that is an error."""
    try:
        return 200, fetch(url)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()
