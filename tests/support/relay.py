"""A way between two programs that a test can block: connections stay and nothing gets through, as when packets drop."""

import asyncio
import threading
from concurrent.futures import Future
from contextlib import suppress

_CHUNK_BYTES = 65536


class Relay:
    """Takes connections on a port of this machine and hands them on, in turn, to the first port that answers."""

    def __init__(self, *targets: int) -> None:
        self._targets = list(targets)
        self._turn = 0
        self._loop = asyncio.new_event_loop()
        self._passes = asyncio.Event()
        self._passes.set()
        self._stop = asyncio.Event()
        started: Future[int] = Future()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._serve(started)])
        self._thread.start()
        self.port = started.result(timeout=60)

    def block(self) -> None:
        """Let nothing through from now on, in connections that there are and in new ones."""
        self._loop.call_soon_threadsafe(self._passes.clear)

    def unblock(self) -> None:
        """Let everything through again, what waited too."""
        self._loop.call_soon_threadsafe(self._passes.set)

    def close(self) -> None:
        """End every connection and listen no more."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=60)
        self._loop.close()

    async def _serve(self, started: Future[int]) -> None:
        server = await asyncio.start_server(self._hand_on, "127.0.0.1", 0)
        started.set_result(server.sockets[0].getsockname()[1])
        await self._stop.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            await self._passes.wait()
            back, forth = await self._connect()
            await asyncio.gather(self._copy(reader, forth), self._copy(back, writer))
        writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the target whose turn it is, or to another one; ConnectionError when none is there."""
        for _ in self._targets:
            self._turn += 1
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", self._targets[self._turn % len(self._targets)])
        raise ConnectionError("no target listens")

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(_CHUNK_BYTES):
                await self._passes.wait()
                writer.write(chunk)
                await writer.drain()
        finally:
            writer.close()
