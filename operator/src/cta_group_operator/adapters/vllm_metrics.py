"""Reads the metrics of vLLM servers over HTTP. A server is a tenant's: nothing is sent to it but the question.

No credentials, cookies or proxies; no redirection is followed; an answer is bounded in time and size, and one that is
compressed is refused, because what it unpacks to is not bounded.
"""

import asyncio
import ipaddress
from typing import Final, Self

import aiohttp
from yarl import URL

from cta_group_core.budget.target import MetricsTarget
from cta_group_core.budget.window import Reading
from cta_group_operator.adapters.vllm_exposition import read_exposition
from cta_group_operator.errors import MetricsUnreadable

TIMEOUT_SECONDS: Final = 5.0
MOST_BYTES: Final = 2 * 2**20
"""A server with 8 engines tells some 300 KiB."""
_MOST_CONNECTIONS: Final = 32
_HEADERS: Final = {"Accept": "text/plain", "Accept-Encoding": "identity", "User-Agent": "cta-group-operator"}
_WORDS_MOST: Final = 200


class VllmMetrics:
    """Implements the port ``ServerMetrics``; an async context manager."""

    def __init__(self, timeout_seconds: float = TIMEOUT_SECONDS, *, takes_loopback: bool = False) -> None:
        """``takes_loopback``: ask servers of this very machine too, for an operator outside its cluster."""
        self._timeout_seconds = timeout_seconds
        self._takes_loopback = takes_loopback
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_MOST_CONNECTIONS, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
            timeout=aiohttp.ClientTimeout(total=self._timeout_seconds),
            auto_decompress=False,
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def read(self, address: str, target: MetricsTarget) -> Reading:
        """Return what a server tells now; raises MetricsUnreadable, which names the URL."""
        url = _url(address, target, takes_loopback=self._takes_loopback)
        try:
            body = await self._body(url)
            return await asyncio.to_thread(_read, body)
        except MetricsUnreadable as unreadable:
            raise MetricsUnreadable(f"{url}: {unreadable}") from unreadable

    async def _body(self, url: URL) -> bytes:
        if self._session is None:
            raise MetricsUnreadable("the client is closed")
        try:
            # A server's own certificate names no pod's address; nothing secret is sent, so anybody may answer.
            async with self._session.get(url, allow_redirects=False, ssl=False) as answer:
                return await _bounded(answer)
        except TimeoutError as late:
            raise MetricsUnreadable(f"no whole answer within {self._timeout_seconds:g} s") from late
        except (aiohttp.ClientError, OSError, ValueError) as broken:
            raise MetricsUnreadable(f"{type(broken).__name__}: {str(broken)[:_WORDS_MOST]}") from broken


def _may_be_a_pod(host: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Tell whether a pod can have an address; one with ``hostNetwork`` has that of its node.

    Not so the operator's own machine, neighbours on its wire (the cloud's metadata) and whatever stands for an IPv4
    address inside IPv6, mapped or translated, which is all in ``::/8``.
    """
    if isinstance(host, ipaddress.IPv6Address) and (host.ipv4_mapped is not None or host.is_reserved):
        return False
    return not (host.is_loopback or host.is_link_local or host.is_multicast or host.is_unspecified)


def _url(address: str, target: MetricsTarget, *, takes_loopback: bool = False) -> URL:
    try:
        host = ipaddress.ip_address(address)
    except ValueError as none:
        raise MetricsUnreadable(f"{address[:_WORDS_MOST]!r} is no IP address") from none
    if not _may_be_a_pod(host) and not (takes_loopback and host.is_loopback):
        raise MetricsUnreadable(f"{host} is no address of a pod")
    return URL.build(scheme="https" if target.https else "http", host=str(host), port=target.port, path="/metrics")


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    if answer.status != 200:  # noqa: PLR2004 - HTTP's own number
        raise MetricsUnreadable(f"it answered {answer.status}")
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise MetricsUnreadable("its answer is compressed, which was not asked for")
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > MOST_BYTES:
            raise MetricsUnreadable(f"its answer is longer than {MOST_BYTES} bytes")
    return bytes(body)


def _read(body: bytes) -> Reading:
    try:
        return read_exposition(body.decode())
    except UnicodeDecodeError as binary:
        raise MetricsUnreadable("its answer is no text") from binary
