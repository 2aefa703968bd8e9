"""Reading metrics from servers that are a tenant's, and may answer anything or nothing."""

import asyncio
import gzip
import ssl
from pathlib import Path

import pytest

from admission_running import local_certificate, write_pair
from cta_group_core.budget.target import MetricsTarget
from cta_group_operator.adapters.vllm_metrics import MOST_BYTES, VllmMetrics
from cta_group_operator.errors import MetricsUnreadable
from scripted_server import HASTY_SECONDS, LOOPBACK, PATIENT_SECONDS, answer, read, serving
from vllm_server_metrics import ServerMetrics


async def test_a_server_with_a_certificate_of_its_own_is_read(tmp_path: Path) -> None:
    """No authority knows it and it names no address: nothing secret is sent, so anybody may answer."""
    text = ServerMetrics().text().encode()
    script = answer(f"HTTP/1.1 200 OK\nContent-Length: {len(text)}", text)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await script(reader, writer)
        writer.close()

    write_pair(tmp_path, local_certificate()[1])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    server = await asyncio.start_server(handle, LOOPBACK, 0, ssl=context)
    async with server:
        reading = await read(server.sockets[0].getsockname()[1], https=True)
    assert reading.running == 0


async def test_no_redirection_is_followed() -> None:
    """Wherever it points, nobody is asked there."""
    asked = asyncio.Event()

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await answer("HTTP/1.1 200 OK\nConnection: close", ServerMetrics().text().encode())(reader, writer)

    async with serving(elsewhere) as other:
        head = f"HTTP/1.1 302 Found\nLocation: http://{LOOPBACK}:{other}/metrics\nContent-Length: 0"
        async with serving(answer(head)) as port:
            with pytest.raises(MetricsUnreadable, match="it answered 302"):
                await read(port)
    assert not asked.is_set()


async def test_nothing_but_the_question_is_sent() -> None:
    """No authorization, no cookie, also after one was offered; the path is always the same."""
    heads: list[str] = []

    async def listening(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 500 No\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with serving(listening) as port, VllmMetrics(PATIENT_SECONDS, takes_loopback=True) as client:
        for _ in range(2):
            with pytest.raises(MetricsUnreadable, match="it answered 500"):
                await client.read(LOOPBACK, MetricsTarget(port))
    assert [head.splitlines()[0] for head in heads] == ["GET /metrics HTTP/1.1"] * 2
    names = {line.partition(":")[0].lower() for head in heads for line in head.splitlines()[1:] if line}
    assert names == {"host", "accept", "accept-encoding", "user-agent", "connection"}


async def test_a_body_without_end_is_cut() -> None:
    """After two mebibytes nobody listens any more."""
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while True:
            writer.write(b"vllm:num_requests_running 1\n" * 1000)
            await writer.drain()
            sent += 28_000

    async with serving(endless) as port:
        with pytest.raises(MetricsUnreadable, match=f"longer than {MOST_BYTES} bytes"):
            await read(port)
    assert sent < 20 * MOST_BYTES


@pytest.mark.parametrize(
    "beginning", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\nvllm:num_requests_running 1\n"]
)
async def test_a_server_that_does_not_go_on_is_left(beginning: bytes) -> None:
    """Without a head, in the middle of one, or in the middle of a body."""
    never = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(beginning)
        await never.wait()

    async with serving(slow) as port:
        with pytest.raises(MetricsUnreadable, match=r"no whole answer within 0\.5 s"):
            await read(port, seconds=HASTY_SECONDS)
        never.set()


@pytest.mark.parametrize(
    ("head", "body", "said"),
    [
        ("HTTP/1.1 404 Not Found\nContent-Length: 0", b"", "it answered 404"),
        ("HTTP/1.1 200 OK\nConnection: close", b"<html></html>", "no latency or load under a name of vLLM's"),
        ("HTTP/1.1 200 OK\nConnection: close", b"\xff\xfe\x00", "its answer is no text"),
        ("HTTP/1.1 200 OK\nContent-Encoding: gzip\nConnection: close", gzip.compress(b"0" * 10**6), "compressed"),
        ("HTTP/1.1 200 OK\nContent-Length: 100", b"vllm:num_requests_running 1\n", "ClientPayloadError"),
        (f"HTTP/1.1 200 OK\nX-Long: {'a' * 100_000}", b"", ": "),
        ("SSH-2.0-OpenSSH_9.2", b"", ": "),
        ("", b"", ": "),
    ],
)
async def test_what_is_no_answer_is_said(head: str, body: bytes, said: str) -> None:
    """Each ends as one error, which names the address and is short."""
    async with serving(answer(head, body)) as port:
        with pytest.raises(MetricsUnreadable) as refused:
            await read(port)
    message = str(refused.value)
    assert message.startswith(f"http://{LOOPBACK}:{port}/metrics: ")
    assert said in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("169.254.169.254", "no address of a pod"),
        ("fe80::1", "no address of a pod"),
        ("224.0.0.1", "no address of a pod"),
        ("127.0.0.1", "no address of a pod"),
        ("127.8.0.1", "no address of a pod"),
        ("::1", "no address of a pod"),
        ("::", "no address of a pod"),
        ("::ffff:127.0.0.1", "no address of a pod"),
        ("::ffff:169.254.169.254", "no address of a pod"),
        ("::ffff:10.0.0.1", "no address of a pod"),
        ("::127.0.0.1", "no address of a pod"),
        ("64:ff9b::a9fe:a9fe", "no address of a pod"),
        ("0.0.0.0", "no address of a pod"),
        ("example.com", "no IP address"),
        ("127.0.0.1/x?y=", "no IP address"),
        ("", "no IP address"),
    ],
)
async def test_only_addresses_of_pods_are_asked(address: str, said: str) -> None:
    """No name is looked up, and nobody is sent to the cloud's own addresses."""
    async with VllmMetrics(PATIENT_SECONDS) as client:
        with pytest.raises(MetricsUnreadable, match=said):
            await client.read(address, MetricsTarget(80))


async def test_a_port_where_nobody_listens_is_said() -> None:
    """A pod that runs and does not serve yet."""
    async with serving(answer("")) as port:
        pass
    with pytest.raises(MetricsUnreadable, match="ClientConnectorError"):
        await read(port)
