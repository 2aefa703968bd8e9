"""The simulated MPS control daemon as a server on a unix socket; :mod:`.mps_control` documents its protocol."""

import asyncio
import fcntl
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from cta_group_plugin.simulated.mps_state import ClientRefused, DaemonState, Limits

SOCKET_NAME: Final = "simulated.sock"
FAULTS_NAME: Final = "simulated-faults"
PID_NAME: Final = "nvidia-cuda-mps-control.pid"
STATE_NAME: Final = "simulated-state.json"

_POLL_SECONDS = 0.05
_PEER: Final = struct.Struct("3i")  # unix(7), struct ucred: process, user and group id


class AlreadyRunning(Exception):
    """Another daemon serves the folder; the text is NVIDIA's."""


class SimulatedDaemon:
    """Serves one pipe folder until it is told to quit."""

    def __init__(self, pipe_folder: Path, log_file: Path) -> None:
        self._folder = pipe_folder
        self._log_file = log_file
        self._state = DaemonState(server_pid=os.getpid())
        self._connections = count(1)
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._quit = asyncio.Event()

    async def serve(self) -> None:
        """Serve until ``quit``. Raises :class:`AlreadyRunning`."""
        with self._owned_folder():
            if (delay := self._fault("slow-start")) is not None:
                await asyncio.sleep(float(delay or 1))
            path = self._folder / SOCKET_NAME
            path.unlink(missing_ok=True)  # of a daemon that was killed: the lock says that none lives
            server = await asyncio.start_unix_server(self._connection, path=path)
            path.chmod(0o666)  # clients run under any user id
            self._note("started")
            async with server:
                await self._quit.wait()
            path.unlink(missing_ok=True)
            await _until(lambda: self._fault("stays") is None)
            self._note("ended")

    @contextmanager
    def _owned_folder(self) -> Iterator[None]:
        with (self._folder / PID_NAME).open("a+", encoding="ascii") as pid_file:
            try:
                fcntl.flock(pid_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise AlreadyRunning("An instance of this daemon is already running") from None
            pid_file.truncate(0)
            pid_file.write(f"{os.getpid()}\n")
            pid_file.flush()
            yield
            pid_file.truncate(0)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await reader.readline()).decode("utf-8", errors="replace").strip()
            await _until(lambda: self._fault("no-answer") is None)
            if self._fault("crash") is not None:
                os._exit(1)  # as a crash is: no clean-up, nothing said
            if self._fault("server-crash") is not None:
                self._end_server()
            if line.split(maxsplit=1)[:1] == ["hello"]:
                await self._client(line.removeprefix("hello").strip() or _peer(writer), reader, writer)
            elif line:
                writer.write(await self._answer(line))
                await writer.drain()
        except ConnectionError:
            pass  # whoever asked has gone; nobody is left to be told
        finally:
            writer.close()

    async def _client(self, pid: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = next(self._connections)
        try:
            limits = self._state.connect(
                connection,
                int(pid),
                table_full=self._fault("clients-full") is not None,
                fault=self._fault("fault") is not None,
            )
            self._writers[connection] = writer
            writer.write(_hello_answer(limits))
            self._note(f"client {pid} connected")
            await writer.drain()
            while await reader.read(4096):
                pass
        except (ClientRefused, ValueError) as refused:
            writer.write(json.dumps({"error": str(refused)}).encode() + b"\n")
        finally:
            self._writers.pop(connection, None)
            self._state.disconnect(connection)
            self._note(f"client {pid} gone")

    def _end_server(self) -> None:
        """Let the server end as by a crash: with all its clients."""
        self._state.end_server()
        for writer in self._writers.values():
            writer.close()

    async def _answer(self, line: str) -> bytes:
        if line.split(maxsplit=1)[0] == "quit":
            await _until(lambda: not self._state.clients)  # NVIDIA's waits for its servers' clients too
            self._quit.set()
            return b"ok\n"
        text = self._state.command(
            line,
            fault=self._fault("fault") is not None,
            ignore_memory=self._fault("ignore-memory") is not None
            or ("_default_" not in line and self._fault("ignore-server-memory") is not None),
        )
        if line.startswith("set_"):
            self._note(line)
        return f"ok\n{text}\n".encode() if text else b"ok\n"

    def _fault(self, name: str) -> str | None:
        """Return what follows the name of a fault that is wanted; None when it is not."""
        try:
            lines = (self._folder / FAULTS_NAME).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return None
        wanted = {line.split()[0]: line.split(maxsplit=1)[1:] for line in lines if line.strip()}
        return " ".join(wanted[name]) if name in wanted else None

    def _note(self, what: str) -> None:
        """Write the log, and the state for whoever looks into the folder; clients do not need either."""
        with suppress(OSError):  # the disk is full
            self._write_down(what)

    def _write_down(self, what: str) -> None:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with self._log_file.open("a", encoding="utf-8") as log:
            log.write(f"[{stamp} simulated {os.getpid()}] {what}\n")
        server = self._state.server
        state = {
            "pid": os.getpid(),
            "default_sm_percent": self._state.defaults.sm_percent,
            "default_memory_mib": self._state.defaults.memory_mib,
            "server_sm_percent": server and server.limits.sm_percent,
            "server_memory_mib": server and server.limits.memory_mib,
            "clients": sorted(self._state.clients.values()),
        }
        unfinished = self._folder / f"{STATE_NAME}.new"
        unfinished.write_text(json.dumps(state) + "\n", encoding="utf-8")
        unfinished.replace(self._folder / STATE_NAME)


async def _until(is_true: Callable[[], bool]) -> None:
    while not is_true():  # noqa: ASYNC110 - files change without an event
        await asyncio.sleep(_POLL_SECONDS)


def _peer(writer: asyncio.StreamWriter) -> str:
    """Return the process id of a client, 0 when it is in a process-id namespace that is not visible here."""
    told = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    pid, _, _ = _PEER.unpack(told)
    return str(pid)


def _hello_answer(limits: Limits) -> bytes:
    percent = limits.sm_percent
    told = {"sm_percent": int(percent) if percent.is_integer() else percent, "memory_mib": limits.memory_mib}
    return json.dumps(told).encode() + b"\n"
