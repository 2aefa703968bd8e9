"""Carries TCP connections from a listening socket of one network namespace to an address of another."""

import asyncio
import contextlib
import socket

_CHUNK_BYTES = 64 * 1024


class Forwarder:
    """The forwards of one supervisor. Connections are made where this process is, whatever the listener's place."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []

    async def add(self, listener: socket.socket, host: str, port: int) -> None:
        """Accept on ``listener`` from now on, and connect each connection to ``host:port``."""

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _carry(reader, writer, host, port)

        listener.setblocking(False)  # noqa: FBT003 - the name of the standard library's argument is positional
        self._servers.append(await asyncio.start_server(carry, sock=listener))


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    """Join two connections until both directions ended; the far side being away closes the near one."""
    with contextlib.closing(writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(host, port)
        except OSError:
            return
        with contextlib.closing(far_writer):
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
