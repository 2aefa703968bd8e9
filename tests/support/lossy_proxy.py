"""A way to the API server that can be disturbed: connections that fall silent, break, or are not taken."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from cluster_harness.waiting import PATIENCE_SECONDS

_CHUNK_BYTES = 65536
T = TypeVar("T")


@dataclass
class _Pair:
    """One connection, both halves."""

    writers: list[asyncio.StreamWriter]
    pumps: list[asyncio.Task[None]] = field(default_factory=list)


class LossyProxy:
    """Carries bytes between whoever connects to ``port`` of 127.0.0.1 and a port there, in a thread of its own."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._loop = asyncio.new_event_loop()
        self._pairs: list[_Pair] = []
        self._takes_connections = True
        self._thread = threading.Thread(target=self._loop.run_forever)
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self.port = self._await(self._serve())
        return self

    def __exit__(self, *_: object) -> None:
        self._await(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    def open_connections(self) -> int:
        """Return on how many connections something may come at any time."""
        return self._call(lambda: len(self._alive()))

    def silence(self) -> None:
        """Carry nothing more on the connections that are there, and close none."""
        self._call(self._silence)

    def cut(self, *, takes_connections: bool = True) -> None:
        """Close every connection, and take new ones or not."""
        self._takes_connections = takes_connections
        self._call(self._cut)

    def mend(self) -> None:
        """Take connections again."""
        self._takes_connections = True

    async def _serve(self) -> int:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _end(self) -> None:
        self._server.close()
        self._cut()
        await asyncio.sleep(0)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._takes_connections:
            writer.close()
            return
        try:
            to_server = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.close()
            return
        pair = _Pair([writer, to_server[1]])
        self._pairs.append(pair)
        pair.pumps += [
            self._loop.create_task(_pump(reader, to_server[1])),
            self._loop.create_task(_pump(to_server[0], writer)),
        ]

    def _alive(self) -> list[_Pair]:
        return [pair for pair in self._pairs if not all(pump.done() for pump in pair.pumps)]

    def _silence(self) -> None:
        for pair in self._alive():
            for pump in pair.pumps:
                pump.cancel()

    def _cut(self) -> None:
        self._silence()
        for pair in self._pairs:
            for writer in pair.writers:
                writer.transport.abort()
        self._pairs.clear()

    def _call(self, action: Callable[[], T]) -> T:
        done: Future[T] = Future()
        self._loop.call_soon_threadsafe(lambda: done.set_result(action()))
        return done.result(PATIENCE_SECONDS)

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes until either side ends; one that is cancelled leaves both sides open."""
    try:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
