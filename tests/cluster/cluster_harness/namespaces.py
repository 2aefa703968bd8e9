"""The private namespaces of a node, seen from the machine that it runs on: commands inside, ways to its addresses."""

import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cluster_harness.control import Control
from cluster_harness.errors import CommandError
from cluster_harness.probes import LOOPBACK

_KINDS = ("--pid", "--net", "--mount", "--uts", "--ipc")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_COMMAND_TIMEOUT_SECONDS = 120.0


class Namespaces:
    """The namespaces in which the supervisor of ``control`` is the first process."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._forwards: dict[tuple[str, int], int] = {}

    @property
    def root(self) -> Path:
        """The node's file system as this machine can reach it, to read and to put files into."""
        return Path(f"/proc/{self._control.process_id()}/root")

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs ``argv`` in there, in the working folder /."""
        return ["nsenter", f"--target={self._control.process_id()}", *_KINDS, "--wd=/", "--", *argv]

    def run(self, argv: Sequence[str], *, timeout_seconds: float = _COMMAND_TIMEOUT_SECONDS) -> str:
        """Run a command in there and return its standard output; CommandError unless it exits 0."""
        done = subprocess.run(
            self.command(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
            env={"PATH": _PATH, "HOME": "/root"},
        )
        if done.returncode:
            raise CommandError(f"{' '.join(argv)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def forward(self, host: str, port: int) -> int:
        """Return a port of 127.0.0.1 on this machine whose connections lead to ``host:port`` as seen in there.

        It lasts as long as the namespaces; asked for again, the same port is the answer.
        """
        if (host, port) not in self._forwards:
            with socket.create_server((LOOPBACK, 0)) as listener:
                self._control.forward(listener, host, port)
                self._forwards[host, port] = int(listener.getsockname()[1])
        return self._forwards[host, port]
