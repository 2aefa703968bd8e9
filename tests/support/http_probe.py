"""Asks a process under test over HTTP."""

import http.client
import urllib.error
import urllib.request

from cluster_harness.probes import LOOPBACK, free_ports


def free_address() -> str:
    """Return an address of this machine that nothing listens at."""
    (port,) = free_ports(LOOPBACK, 1)
    return f"{LOOPBACK}:{port}"


def fetch(url: str) -> str:
    """Return what is answered. Raises OSError, also for a status that is an error or a broken answer."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - the process under test
            body: bytes = answer.read()
    except http.client.HTTPException as broken:
        raise ConnectionError(f"{url}: {broken!r}") from broken
    return body.decode()


def fetch_status(url: str) -> tuple[int, str]:
    """Return the status and what is answered, also for a status that is an error."""
    try:
        return 200, fetch(url)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()
