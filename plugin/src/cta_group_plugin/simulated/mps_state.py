"""What the simulated MPS control daemon of one GPU knows, and what its commands do to it. No I/O.

The commands and their effects follow NVIDIA's "Multi-Process Service" document, appendix "nvidia-cuda-mps-control", of
the releases before protocol version 3: defaults reach the next server, a server's own limits reach its later clients,
and nothing ever changes for a client that is connected. The answers are those of NVIDIA's daemon of driver 580, word
for word (``tests/support/mps_dialogue.py``): it never says that a command failed, it only prints what is true then.
"""

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import takewhile
from typing import Final

MAX_CLIENTS = 48
"""Clients on one GPU. Source: the same document, up to CUDA 13.0."""

_WHOLE_PERCENT = 100
_DEVICE = "0"
_MIB_BY_G = 1024


class ClientRefused(Exception):
    """The daemon takes no client now; the text says why."""


@dataclass(slots=True)
class Limits:
    """What a client gets at most."""

    sm_percent: float = 100.0
    memory_mib: int | None = None
    """``None``: not limited."""


@dataclass(slots=True)
class Server:
    """The process that holds the GPU's context for all clients."""

    pid: int
    limits: Limits


@dataclass(slots=True)
class DaemonState:
    """One simulated daemon with at most one server, as with NVIDIA's in multi-user mode."""

    server_pid: int
    """Process id that its server will say it has."""
    defaults: Limits = field(default_factory=Limits)
    server: Server | None = None
    clients: dict[int, int] = field(default_factory=dict)
    """Process id of each client by the number of its connection."""

    def connect(self, connection: int, pid: int, *, table_full: bool = False, fault: bool = False) -> Limits:
        """Take a client and return its limits, or raise :class:`ClientRefused`. The first starts the server."""
        if fault:
            raise ClientRefused("the MPS server is in state FAULT and takes no client")
        if table_full or len(self.clients) >= MAX_CLIENTS:
            raise ClientRefused(f"device busy or unavailable: {MAX_CLIENTS} clients are connected already")
        server = self.started_server()
        self.clients[connection] = pid
        return server.limits

    def disconnect(self, connection: int) -> None:
        """Forget a client; its server goes on."""
        self.clients.pop(connection, None)

    def end_server(self) -> None:
        """Forget the server and its clients; the next server is another process."""
        if self.server is not None:
            self.server = None
            self.server_pid += 1
            self.clients.clear()

    def started_server(self) -> Server:
        """Return the server, started with the daemon's defaults when there was none."""
        if self.server is None:
            limits = Limits(self.defaults.sm_percent, self.defaults.memory_mib)
            self.server = Server(pid=self.server_pid, limits=limits)
        return self.server

    def command(self, text: str, *, fault: bool = False, ignore_memory: bool = False) -> str:
        """Do one command and return what NVIDIA's program prints, without the end of the last line."""
        name, *words = text.split()
        if name in _OF_A_SERVER:
            return self._command_of_server(name, words, fault=fault, ignore_memory=ignore_memory)
        if name == "get_server_list":
            return "" if self.server is None else str(self.server.pid)
        if name == "start_server":
            self.started_server()
            return ""
        if name in _OF_DEFAULTS:
            return _limit_command(_OF_DEFAULTS[name], self.defaults, words, ignore_memory=ignore_memory)
        return f'Unknown command "{name}"'

    def _command_of_server(self, name: str, words: list[str], *, fault: bool, ignore_memory: bool) -> str:
        if not words:
            return "A server PID is required"
        pid, *rest = words
        if self.server is None or pid != str(self.server.pid):
            return f"Server {pid} not found"
        if name == "get_server_status":
            return "FAULT" if fault else "ACTIVE"
        if name == "get_client_list":
            return "\n".join(str(client) for client in self.clients.values())
        return _limit_command(_OF_A_SERVER[name], self.server.limits, rest, ignore_memory=ignore_memory)


class _Kind(Enum):
    GET_PERCENT = auto()
    SET_PERCENT = auto()
    GET_MEMORY = auto()
    SET_MEMORY = auto()
    OTHER = auto()


_OF_DEFAULTS: Final = {
    "get_default_active_thread_percentage": _Kind.GET_PERCENT,
    "set_default_active_thread_percentage": _Kind.SET_PERCENT,
    "get_default_device_pinned_mem_limit": _Kind.GET_MEMORY,
    "set_default_device_pinned_mem_limit": _Kind.SET_MEMORY,
}
_OF_A_SERVER: Final = {
    "get_server_status": _Kind.OTHER,
    "get_client_list": _Kind.OTHER,
    "get_active_thread_percentage": _Kind.GET_PERCENT,
    "set_active_thread_percentage": _Kind.SET_PERCENT,
    "get_device_pinned_mem_limit": _Kind.GET_MEMORY,
    "set_device_pinned_mem_limit": _Kind.SET_MEMORY,
}


def _limit_command(kind: _Kind, limits: Limits, words: list[str], *, ignore_memory: bool) -> str:
    if kind is _Kind.SET_PERCENT:
        _set_percent(limits, words)
    if kind in {_Kind.GET_PERCENT, _Kind.SET_PERCENT}:
        return f"{limits.sm_percent:.1f}"
    if kind is _Kind.GET_MEMORY:
        return _memory(limits, words)
    if not ignore_memory:
        _set_memory(limits, words)
    return ""


def _set_percent(limits: Limits, words: list[str]) -> None:
    """Set it when it can be one; what cannot be is not said to be wrong."""
    text = words[0] if words else ""
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]+)?", text, re.ASCII) and 0 < float(text) <= _WHOLE_PERCENT:
        limits.sm_percent = float(text)


def _memory(limits: Limits, words: list[str]) -> str:
    """Print what NVIDIA's does: whole GiB from one on; what is applied is every MiB."""
    if limits.memory_mib is None or words != [_DEVICE]:
        return ""
    return f"{limits.memory_mib // _MIB_BY_G}G" if limits.memory_mib >= _MIB_BY_G else f"{limits.memory_mib}M"


def _set_memory(limits: Limits, words: list[str]) -> None:
    """Set the limit of the daemon's one device, as NVIDIA's reads it.

    The digits at the beginning count, in GiB when a G follows and in MiB otherwise; no digits, or zero, is no limit.
    """
    if len(words) < 2 or words[0] != _DEVICE:  # noqa: PLR2004 - device and value
        return
    digits = "".join(takewhile(str.isdecimal, words[1]))
    is_gib = words[1].removeprefix(digits).startswith("G")
    limits.memory_mib = int(digits or 0) * (_MIB_BY_G if is_gib else 1) or None
