"""Runs the components of a cluster and everything that must happen where they are.

One process, started by the warden; as process 1 of a private PID namespace it takes every other process of the
cluster with it when it ends. It is told what to do through a socket in the state folder (see ``control``), reaps
what its components leave behind, and carries TCP connections into its network namespace: a socket belongs to the
namespace in which it was made, so one that listens outside is handed in, and connections onward start here.

It ends when its standard input ends, so that it never outlives the warden.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from cluster_harness.components import Component
from cluster_harness.control import CONTROL_SOCKET, MESSAGE_BYTES
from cluster_harness.forwarding import Forwarder
from cluster_harness.node_init import prepare_node


class Supervisor:
    """The components by name, and the answers to the requests about them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._components: dict[str, Component] = {}
        self._pids: dict[str, int] = {}
        self._exits: dict[int, asyncio.Future[int]] = {}
        self._forwarder = Forwarder()

    def reap(self) -> None:
        """Collect every ended child; orphans of the namespace are children of process 1."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            future = self._exits.get(pid)
            if future is not None:
                future.set_result(os.waitstatus_to_exitcode(status))

    async def answer(self, request: dict[str, Any], descriptors: list[int]) -> object:
        """Carry out one request; raise ValueError in words for one that makes no sense."""
        match request:
            case {"do": "declare", "component": dict(fields)}:
                component = Component.from_json(fields)
                self._components[component.name] = component
                return None
            case {"do": "names"}:
                return list(self._components)
            case {"do": "start", "name": str(name)}:
                return self._start(self._known(name))
            case {"do": "stop", "name": str(name), "signal": int(number), "timeout_seconds": float(seconds)}:
                return await self._stop(name, number, seconds)
            case {"do": "status"}:
                return {name: self._exit_status(name) for name in self._pids}
            case {"do": "forward", "host": str(host), "port": int(port)}:
                await self._forwarder.add(socket.socket(fileno=descriptors[0]), host, port)
                return None
            case _:
                raise ValueError(f"the supervisor does not know this request: {request}")

    def _known(self, name: str) -> Component:
        if name not in self._components:
            raise ValueError(f"no component {name!r}; there are {', '.join(self._components) or 'none'}")
        return self._components[name]

    def _exit_status(self, name: str) -> int | None:
        ended = self._exits[self._pids[name]]
        return ended.result() if ended.done() else None

    def _start(self, component: Component) -> int:
        if component.name in self._pids and self._exit_status(component.name) is None:
            raise ValueError(f"{component.name} is already running")
        log = str(component.log_file(self._folder))
        null = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
        output = [(os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)]
        # The kernel ends a component with its parent, should this process be killed outside a namespace.
        argv = ["setpriv", "--pdeathsig", "KILL", *component.argv]
        pid = os.posix_spawnp(
            argv[0],
            argv,
            os.environ | component.environment,
            file_actions=[*null, *output, (os.POSIX_SPAWN_DUP2, 1, 2)],
            setsid=True,
            setsigdef=[signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE],
        )
        self._exits[pid] = asyncio.get_running_loop().create_future()
        self._pids[component.name] = pid
        return pid

    async def kill_all(self) -> None:
        """End every component at once: the state is thrown away, so nobody needs time to save any."""
        for name in self._pids:
            await self._stop(name, signal.SIGKILL, 0)

    async def _stop(self, name: str, number: int, timeout_seconds: float) -> int:
        pid = self._pids.get(self._known(name).name)
        if pid is None:
            raise ValueError(f"{name} was never started")
        ended = self._exits[pid]
        if not ended.done():
            os.kill(pid, number)
            await asyncio.wait([ended], timeout=timeout_seconds)
        if not ended.done():
            os.kill(pid, signal.SIGKILL)
        return await ended


async def serve(folder: Path) -> None:
    """Answer requests until standard input ends."""
    loop = asyncio.get_running_loop()
    supervisor = Supervisor(folder)
    loop.add_signal_handler(signal.SIGCHLD, supervisor.reap)
    ended = loop.create_future()
    loop.add_reader(sys.stdin.fileno(), _end, ended)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.setblocking(False)  # noqa: FBT003 - the name of the standard library's argument is positional
        listener.bind(str(folder / CONTROL_SOCKET))
        listener.listen()
        accepting = loop.create_task(_accept(listener, supervisor))
        try:
            await asyncio.wait([ended, accepting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await supervisor.kill_all()
        if accepting.done():
            accepting.result()  # raises what ended it
        accepting.cancel()


def _end(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


async def _accept(listener: socket.socket, supervisor: Supervisor) -> None:
    loop = asyncio.get_running_loop()
    tasks = set[asyncio.Task[None]]()
    while True:
        connection, _ = await loop.sock_accept(listener)
        task = loop.create_task(_converse(connection, supervisor))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _converse(connection: socket.socket, supervisor: Supervisor) -> None:
    loop = asyncio.get_running_loop()
    with connection:
        await _readable(connection)
        message, descriptors, _, _ = socket.recv_fds(connection, MESSAGE_BYTES, 1)
        if not message:
            return  # someone only looked whether the supervisor is there
        try:
            reply = {"result": await supervisor.answer(json.loads(message), descriptors)}
        except (ValueError, OSError) as error:
            reply = {"error": str(error)}
        await loop.sock_sendall(connection, json.dumps(reply).encode())


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    connection.setblocking(False)  # noqa: FBT003 - as above
    loop.add_reader(connection, _end, ready)
    try:
        await ready
    finally:
        loop.remove_reader(connection)


def main() -> None:
    """Prepare the namespaces where a node plan was left in the state folder, then serve."""
    folder = Path(sys.argv[1])
    prepare_node(folder)
    asyncio.run(serve(folder))


if __name__ == "__main__":
    main()
