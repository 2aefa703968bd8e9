"""Single calls to the API server over aiohttp: thin, typed, with the server's refusals as errors of our own."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import aiohttp
import msgspec

from cta_group_core.names import FIELD_MANAGER_OPERATOR
from cta_group_operator.adapters.connection import Connection
from cta_group_operator.errors import ApiError, ApiUnavailable, Conflict, Forbidden, Gone, NotFound, Rejected
from cta_group_operator.ports import Json

_TIMEOUT_SECONDS: Final = 20.0
_KEEPALIVE_SECONDS: Final = 30
_WORDS_MOST: Final = 1000
_ERRORS: Final[Mapping[int, type[ApiError]]] = {
    400: Rejected,
    401: ApiUnavailable,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    415: Rejected,
    422: Rejected,
}
_MERGE: Final = "application/merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"


class KubeClient:
    """Implements the port ``KubeApi``. One session, kept-alive connections; use it as ``async with``."""

    def __init__(self, connection: Connection, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        """``timeout_seconds``: for a connection, for the head of an answer, and for silence inside a short one."""
        self._connection = connection
        self._timeout_seconds = timeout_seconds
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._connection.ssl_context(), limit=64, socket_factory=_watched_socket)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Read one object or one page."""
        return await self._call("GET", path, query=query)

    async def create(self, path: str, body: Json) -> Json:
        """POST."""
        return await self._call("POST", path, body=body, query=_AS_US)

    async def rehearse(self, path: str, body: Json) -> Json:
        """POST that admission sees and nobody stores."""
        return await self._call("POST", path, body=body, query={**_AS_US, "dryRun": "All"})

    async def update(self, path: str, body: Json) -> Json:
        """PUT."""
        return await self._call("PUT", path, body=body, query=_AS_US)

    async def merge_patch(self, path: str, body: Json) -> Json:
        """PATCH, RFC 7386."""
        return await self._call("PATCH", path, body=body, query=_AS_US, content_type=_MERGE)

    async def json_patch(self, path: str, operations: Sequence[Json]) -> Json:
        """PATCH, RFC 6902."""
        return await self._call("PATCH", path, body=operations, query=_AS_US, content_type=_JSON_PATCH)

    async def delete(self, path: str, resource_version: str | None = None) -> None:
        """DELETE, dependents in the background."""
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if resource_version is not None:
            body["preconditions"] = {"resourceVersion": resource_version}
        await self._call("DELETE", path, body=body)

    async def page(self, path: str, query: Mapping[str, str]) -> bytes:
        """Return the text of one page of a list, for a decoder that knows which fields it wants."""
        async with self.stream("GET", path, query, read_timeout_seconds=self._timeout_seconds) as answer:
            return await answer.read()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type} if data is not None else {}
        async with self.stream(
            method, path, query or {}, data=data, headers=headers, read_timeout_seconds=self._timeout_seconds
        ) as answer:
            text = await answer.read()
        try:
            read: Json = msgspec.json.decode(text) if text else {}
        except msgspec.MsgspecError as bad:
            raise ApiUnavailable(f"{method} {path}: not what an API server says: {bad}") from bad
        return read

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        read_timeout_seconds: float | None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send one request and yield the answer while it comes in; it begins within seconds, also that of a watch.

        Silence of ``read_timeout_seconds`` inside it (None: any) and network failures, also while the caller reads,
        become ApiUnavailable.
        """
        if self._session is None:
            raise ApiUnavailable(f"{method} {path}: the client is closed")
        token = self._connection.authorization()
        sent = {"Accept": "application/json", **({"Authorization": token} if token else {}), **(headers or {})}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout_seconds, sock_read=read_timeout_seconds)
        url = self._connection.server + path
        request = self._session.request(method, url, params=dict(query), data=data, headers=sent, timeout=timeout)
        try:
            async with await _begun(request, self._timeout_seconds) as answer:
                if answer.status >= 400:  # noqa: PLR2004 - HTTP's own boundary
                    raise error_of(method, path, answer.status, await answer.read())
                yield answer
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError, OSError) as broken:
            raise ApiUnavailable(f"{method} {path}: {type(broken).__name__}: {broken}") from broken


async def _begun(request: Awaitable[aiohttp.ClientResponse], timeout_seconds: float) -> aiohttp.ClientResponse:
    """Return the answer once its head is there."""
    try:
        async with asyncio.timeout(timeout_seconds) as limit:
            return await request
    except TimeoutError as late:
        if limit.expired():
            raise TimeoutError(f"no answer within {timeout_seconds:g} s") from late
        raise


def _watched_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket on which the kernel notices within a minute that the other machine is gone.

    Nothing is sent on a quiet watch, so without this it would go on waiting for a server that lost its power.
    """
    family, kind, protocol, *_ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_SECONDS // 3)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    return made


_AS_US: Final = {"fieldManager": FIELD_MANAGER_OPERATOR}


def error_of(method: str, path: str, status: int, body: bytes) -> ApiError:
    """Return the error for an answer of the API server, with its words."""
    try:
        words = msgspec.json.decode(body, type=_Status).message
    except msgspec.MsgspecError:
        words = body[:_WORDS_MOST].decode(errors="replace")
    return _ERRORS.get(status, ApiUnavailable)(f"{method} {path}: {status}: {words}")


class _Status(msgspec.Struct):
    message: str = ""
