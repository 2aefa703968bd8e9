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
        return Path(f"/proc/{self._process_id}/root")

    @property
    def _process_id(self) -> int:
        return self._control.process_id()

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs ``argv`` in there, in the working folder /."""
        return [*self._enter(*_KINDS, "--wd=/"), *argv]

    def _enter(self, *options: str) -> list[str]:
        return ["nsenter", f"--target={self._process_id}", *options, "--"]

    def join(self, other: "Namespaces", outer: str, inner: str) -> None:
        """Make a link: the interface ``outer`` in this network, its other end ``inner`` in that of ``other``."""
        self.ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", str(other._process_id))

    def ip(self, *arguments: str) -> None:
        """Run ``ip`` of this machine in this network; CommandError unless it exits 0."""
        self._run([*self._enter("--net"), "ip", *arguments], ["ip", *arguments], _COMMAND_TIMEOUT_SECONDS)

    def run(self, argv: Sequence[str], *, timeout_seconds: float = _COMMAND_TIMEOUT_SECONDS) -> str:
        """Run a command in there and return its standard output; CommandError unless it exits 0."""
        return self._run(self.command(argv), argv, timeout_seconds)

    def _run(self, command: Sequence[str], told: Sequence[str], timeout_seconds: float) -> str:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
            env={"PATH": _PATH, "HOME": "/root"},
        )
        if done.returncode:
            raise CommandError(f"{' '.join(told)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
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
