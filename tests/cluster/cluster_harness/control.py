"""The socket through which the supervisor of a cluster is told what to do: one message each way a connection."""

import json
import signal
import socket
import struct
from pathlib import Path
from typing import Any

from cluster_harness.components import Component
from cluster_harness.errors import HarnessError

CONTROL_SOCKET = "control.sock"
MESSAGE_BYTES = 128 * 1024
_STOP_TIMEOUT_SECONDS = 60.0
_PEER_CREDENTIALS = struct.Struct("iII")


class Control:
    """The supervisor as others see it. Methods raise HarnessError when it refuses or is gone."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / CONTROL_SOCKET

    def declare(self, component: Component) -> None:
        """Make a component known without starting it; one of that name that runs goes on until it is stopped."""
        self._ask({"do": "declare", "component": component.to_json()})

    def start(self, name: str) -> None:
        """Start a declared component; it must not be running."""
        self._ask({"do": "start", "name": name})

    def stop(
        self, name: str, how: signal.Signals = signal.SIGTERM, timeout_seconds: float = _STOP_TIMEOUT_SECONDS
    ) -> int:
        """Send the signal, wait for the end (SIGKILL after the timeout), and return the exit status."""
        request = {"do": "stop", "name": name, "signal": int(how), "timeout_seconds": float(timeout_seconds)}
        return int(self._ask(request))

    def exit_statuses(self) -> dict[str, int | None]:
        """Return the exit status of each component that was started, None while it runs."""
        statuses: dict[str, int | None] = self._ask({"do": "status"})
        return statuses

    def names(self) -> list[str]:
        """Return the names of the declared components in the order of their declaration."""
        names: list[str] = self._ask({"do": "names"})
        return names

    def forward(self, listener: socket.socket, host: str, port: int) -> None:
        """Carry each connection of the listening socket to ``host:port`` as seen by the supervisor."""
        self._ask({"do": "forward", "host": host, "port": port}, listener.fileno())

    def answers(self) -> bool:
        """Return whether the supervisor is there."""
        try:
            self._connect().close()
        except OSError:
            return False
        return True

    def process_id(self) -> int:
        """Return the supervisor's process id as seen from here, not from its PID namespace."""
        with self._connect() as connection:
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
        pid, _, _ = _PEER_CREDENTIALS.unpack(credentials)
        return int(pid)

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.connect(str(self._path))
        except OSError:
            connection.close()
            raise
        return connection

    def _ask(self, request: dict[str, Any], *descriptors: int) -> Any:
        with self._connect() as connection:
            socket.send_fds(connection, [json.dumps(request).encode()], descriptors)
            message = connection.recv(MESSAGE_BYTES)
        if not message:
            raise HarnessError(f"the cluster ended while it was asked to {request['do']}")
        reply = json.loads(message)
        if "error" in reply:
            raise HarnessError(f"{request['do']}: {reply['error']}")
        return reply["result"]
