"""Requests of the plugin to the API server, against servers that answer byte by byte as they like."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from cta_group_plugin.adapters.http_request import BadAnswer, Peer, request

OK = b"HTTP/1.1 200 OK\r\n"


@asynccontextmanager
async def server_that_says(answer: bytes, heard: list[bytes] | None = None) -> AsyncIterator[Peer]:
    """Serve one answer to whatever comes, one byte a write, and close the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        if heard is not None:
            heard.append(head + await reader.readexactly(length))
        for byte in answer:
            writer.write(bytes([byte]))
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield Peer("127.0.0.1", server.sockets[0].getsockname()[1], timeout_seconds=10)


async def asked(peer: Peer) -> tuple[int, bytes]:
    """Return the answer to a request."""
    return await asyncio.to_thread(request, peer, "PATCH", "/apis/x?force=true", {"Content-Type": "a/b"}, b'{"a": 1}')


async def test_request_is_one_that_any_server_reads() -> None:
    """Host with its port, the length of the body, and a connection that is not kept."""
    heard: list[bytes] = []
    async with server_that_says(b"HTTP/1.1 204 No Content\r\n\r\n", heard) as peer:
        assert await asked(peer) == (204, b"")
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"PATCH /apis/x?force=true HTTP/1.1"
    assert {f"Host: 127.0.0.1:{peer.port}".encode(), b"Content-Length: 8", b"Connection: close"} <= set(
        head.splitlines()
    )
    assert body == b'{"a": 1}'


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 5\r\n\r\nhello and what does not belong to it",
        OK + b"content-length:5\r\nX: y\r\n\r\nhello",
        OK + b"Transfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n2;name=value\r\nlo\r\n0\r\nTrailer: x\r\n\r\n",
        OK + b"\r\nhello",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        + OK
        + b"Content-Length: 5\r\n\r\nhello",
    ],
)
async def test_every_framing_of_http_is_read(answer: bytes) -> None:
    """By length, in chunks with their trailers, until the end, and behind interim answers."""
    async with server_that_says(answer) as peer:
        assert await asked(peer) == (200, b"hello")


async def test_status_and_body_of_a_refusal_come_back() -> None:
    """A refusal is an answer like others; what it means is for who asked."""
    async with server_that_says(b"HTTP/1.1 409 Conflict\r\nContent-Length: 3\r\n\r\nno!") as peer:
        assert await asked(peer) == (409, b"no!")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"", "ended in its head"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "begins with 'SSH-2.0-OpenSSH_9.6', which is not HTTP/1.x"),
        (b"HTTP/1.1 fine\r\n\r\n", "'fin' where a number should be"),
        (OK + b"Content-Length: 10\r\n\r\nhello", "ended after 5 of 10 bytes"),
        (OK + b"Content-Length: -1\r\n\r\nhello", "'-1' where a number should be"),
        (OK + b"Content-Length: 99999999999\r\n\r\nhello", "more than 16777216 bytes"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "'zz' where a number should be"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n", "more than 16777216 bytes"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhe", "ended after 2 of 3 bytes"),
        (OK + b"a: b\r\n" * 101, "more than 100 headers"),
    ],
)
async def test_what_is_no_whole_answer_is_never_taken_for_one(answer: bytes, told: str) -> None:
    """A proxy in between, a server that dies, and a peer that speaks something else are told apart from an answer."""
    async with server_that_says(answer) as peer:
        with pytest.raises(BadAnswer, match=told.replace(".", r"\.")):
            await asked(peer)
