"""Reading vLLM's metrics over HTTP: servers of both generations, the stand-in, a real Prometheus, hostile servers."""

import asyncio
import contextlib
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from admission_running import local_certificate, write_pair
from cluster_harness.prometheus_program import run_prometheus
from cluster_harness.scrape_jobs import static_job
from cluster_harness.waiting import wait_for
from cta_group_core.budget.histogram import summed
from cta_group_core.budget.objectives import Measure
from cta_group_core.budget.target import MetricsTarget
from cta_group_core.budget.window import Reading
from cta_group_operator.adapters.vllm_metrics import MOST_BYTES, VllmMetrics
from cta_group_operator.errors import MetricsUnreadable
from stand_in_process import Server
from vllm_server_metrics import ITL_BOUNDS, REQUEST_BOUNDS, TTFT_BOUNDS, ServerMetrics, served_metrics

LOOPBACK = "127.0.0.1"
PATIENT_SECONDS, HASTY_SECONDS = 60.0, 0.5
"""Of what must come to its end whatever the machine does beside, and of what never ends."""
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def read(port: int, *, seconds: float = PATIENT_SECONDS, https: bool = False) -> Reading:
    """Return what the server at a port tells."""
    async with VllmMetrics(timeout_seconds=seconds) as client:
        return await client.read(LOOPBACK, MetricsTarget(port, https=https))


def answer(head: str, body: bytes = b"") -> Script:
    """Return a server that says so to every question."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        await writer.drain()

    return script


@contextlib.asynccontextmanager
async def serving(script: Script) -> AsyncIterator[int]:
    """Run a server by script at the loopback address; yield its port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await script(reader, writer)
        writer.close()

    server = await asyncio.start_server(handle, LOOPBACK, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("old", [True, False], ids=["old", "new"])
async def test_a_server_of_each_generation_is_read(*, old: bool) -> None:
    """The text that vLLM's own metrics library serves, under the names of either generation."""
    metrics = ServerMetrics(old=old)
    metrics.observe(Measure.ITL, 0.03, times=7)
    metrics.load(running=3, waiting=2, cache=0.5)
    with served_metrics(metrics) as port:
        reading = await read(port)
    assert summed([one for (told, _), one in reading.histograms.items() if told is Measure.ITL]).total == 7
    assert (reading.running, reading.waiting, reading.cache_usage) == (3, 2, 0.5)


@pytest.mark.parametrize("words", [(), ("--stand-in-old-metrics",)], ids=["new", "old"])
async def test_the_stand_in_is_read(words: tuple[str, ...]) -> None:
    """What the demo's servers tell is what the operator reads, and in the buckets that vLLM has."""
    environment = {"CTA_GROUP_COUNT": "128", "CTA_GROUP_CAPACITY": "128", "CTA_GROUP_MEMORY_MIB": "80055"}
    server = Server(["serve", "m", "--port=0", *words], {**environment, "NVIDIA_VISIBLE_DEVICES": "GPU-0"}, None)
    try:
        server.wait_serving()
        server.post("/v1/completions", {"prompt": "x" * 40, "max_tokens": 5})
        port = server._port()
        assert port is not None
        reading = await read(port)
    finally:
        server.close()
    counts = {told: one.total for (told, _), one in reading.histograms.items()}
    assert counts == {Measure.TTFT: 1, Measure.ITL: 4, Measure.E2E: 1, Measure.QUEUE: 1}
    bounds = {told: set(one.bounds) for (told, _), one in reading.histograms.items()}
    assert bounds[Measure.TTFT] >= set(TTFT_BOUNDS)
    assert bounds[Measure.ITL] >= set(ITL_BOUNDS)
    assert bounds[Measure.E2E] == bounds[Measure.QUEUE] >= set(REQUEST_BOUNDS)
    assert reading.cache_usage == 0


async def test_a_quantile_is_the_one_that_prometheus_answers(tmp_path: Path) -> None:
    """A real Prometheus over the same two servers computes the same numbers."""
    servers = [ServerMetrics(model="a"), ServerMetrics(model="b")]
    for number, metrics in enumerate(servers, start=1):
        for step in range(60):
            metrics.observe(Measure.TTFT, 0.003 * step * step * number, times=1 + step % 3)
    with contextlib.ExitStack() as running:
        ports = [running.enter_context(served_metrics(one)) for one in servers]
        readings = [await read(port) for port in ports]
        jobs = [static_job("vllm", [f"{LOOPBACK}:{port}" for port in ports], {})]
        prometheus = running.enter_context(run_prometheus(tmp_path, jobs))
        wait_for(lambda: len(prometheus.query("up == 1")) == len(servers), "a scrape of each server", 60)
        told = [one for reading in readings for (key, _), one in reading.histograms.items() if key is Measure.TTFT]
        for share in (0.5, 0.75, 0.9, 0.95, 0.99):
            # The library escapes the colon for a scraper that asks for OpenMetrics, as Prometheus does.
            buckets = '{__name__=~"vllm[:_]time_to_first_token_seconds_bucket"}'
            query = f"histogram_quantile({share}, sum by (le) ({buckets}))"
            (sample,) = prometheus.query(query)
            ours = summed(told).quantile(share)
            assert ours is not None
            assert ours.seconds == pytest.approx(sample.value)


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

    async with serving(listening) as port, VllmMetrics(PATIENT_SECONDS) as client:
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
