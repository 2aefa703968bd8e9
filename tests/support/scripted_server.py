"""HTTP servers by script, for tests of a client that may be told anything."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from cta_group_core.budget.target import MetricsTarget
from cta_group_core.budget.window import Reading
from cta_group_operator.adapters.vllm_metrics import VllmMetrics

LOOPBACK = "127.0.0.1"
PATIENT_SECONDS, HASTY_SECONDS = 60.0, 0.5
"""Of what must come to its end whatever the machine does beside, and of what never ends."""
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def read(port: int, *, seconds: float = PATIENT_SECONDS, https: bool = False) -> Reading:
    """Return what the server at a port tells."""
    async with VllmMetrics(timeout_seconds=seconds, takes_loopback=True) as client:
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
