"""A node's MPS folder with simulated daemons in it: faults, clients and a certain end for every process."""

import asyncio
import json
import os
import signal
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_core.ids import GpuUuid
from cta_group_plugin.mps.timing import Timing
from cta_group_plugin.settings import MpsSettings
from cta_group_plugin.simulated.mps_daemon import FAULTS_NAME, PID_NAME, SOCKET_NAME, STATE_NAME

FAST = Timing(
    command_seconds=60.0,
    poll_seconds=0.2,
    starting_poll_seconds=0.02,
    start_seconds=60.0,
    sync_seconds=60.0,
    slow_seconds=60.0,
    verify_seconds=30.0,
    idle_seconds=0.0,
    backoff_first_seconds=0.2,
    backoff_cap_seconds=1.0,
    backoff_calm_seconds=60.0,
)
"""Rhythms for tests; a command has its time, since each is a process and the machine may be busy."""

IMPATIENT_SECONDS = 3.0
"""Limit of a command where a test waits for it to pass."""


class MpsClient:
    """A connected client of a simulated daemon, as the protocol of ``simulated.mps_control`` has it."""

    def __init__(self, connection: socket.socket, pid: int | None) -> None:
        self._connection = connection
        self.pid = os.getpid() if pid is None else pid
        connection.sendall(b"hello\n" if pid is None else f"hello {pid}\n".encode())
        self.answer: dict[str, Any] = json.loads(connection.makefile("rb").readline())

    def is_dead(self) -> bool:
        """Tell whether the daemon has gone, and this client with it."""
        self._connection.setblocking(False)  # noqa: FBT003 - the socket's own signature
        try:
            return self._connection.recv(1) == b""
        except BlockingIOError:
            return False


class SimulatedNode:
    """The MPS folder of a node."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.settings = MpsSettings(
            mps_root=root,
            mps_socket=root / "supervisor.sock",
            simulated=True,
            metrics_address="",
            environment={"PATH": os.environ["PATH"]},
        )

    def pipe(self, gpu: GpuUuid) -> Path:
        """Return the pipe folder of a GPU's daemon."""
        return self.root / gpu / "pipe"

    def fail(self, gpu: GpuUuid, *faults: str) -> None:
        """Give a daemon these faults and no others; none: it is well again."""
        self.pipe(gpu).mkdir(parents=True, exist_ok=True)
        (self.pipe(gpu) / FAULTS_NAME).write_text("\n".join(faults), encoding="utf-8")

    def pid(self, gpu: GpuUuid) -> int | None:
        """Return the process id of the daemon that serves a GPU; None when there is none."""
        try:
            text = (self.pipe(gpu) / PID_NAME).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return None
        return int(text) if text and is_alive(int(text)) else None

    def state(self, gpu: GpuUuid) -> dict[str, Any]:
        """Return what the daemon of a GPU wrote down at its last change."""
        told: dict[str, Any] = json.loads((self.pipe(gpu) / STATE_NAME).read_text(encoding="utf-8"))
        return told

    @contextmanager
    def client(self, gpu: GpuUuid, pid: int | None = None) -> Iterator[MpsClient]:
        """Be a client of a GPU's daemon until the block ends, as this process or as another one."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(30)
            connection.connect(str(self.pipe(gpu) / SOCKET_NAME))
            yield MpsClient(connection, pid)

    def kill_daemons(self) -> None:
        """End every daemon that is left, whoever started it."""
        for folder in self.root.glob("*/pipe"):
            if (pid := self.pid(GpuUuid(folder.parent.name))) is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@contextmanager
def simulated_node() -> Iterator[SimulatedNode]:
    """Make the folder of a node, short enough for sockets; no daemon in it survives the block."""
    with tempfile.TemporaryDirectory(prefix="cta-mps-", ignore_cleanup_errors=True) as folder:
        node = SimulatedNode(Path(folder))
        try:
            yield node
        finally:
            node.kill_daemons()


async def eventually(
    is_true: Callable[[], bool | Awaitable[bool]], what: str, seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait until the condition holds; fail with ``what`` when it does not in time."""
    try:
        async with asyncio.timeout(seconds):
            while not await _answer(is_true()):  # noqa: ASYNC110 - other processes change it
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {seconds} s: {what}") from None


async def _answer(answer: bool | Awaitable[bool]) -> bool:  # noqa: FBT001 - it is what is asked for
    return answer if isinstance(answer, bool) else await answer


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with."""
    entries = Path(f"/proc/{pid}/environ").read_text(encoding="utf-8").split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second when it ends between opening and reading
        return False
