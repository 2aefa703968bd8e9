"""What the simulated MPS control daemon of one GPU knows, and what its commands do to it. No I/O.

The commands and their effects follow NVIDIA's "Multi-Process Service" document, appendix "nvidia-cuda-mps-control", of
the releases before protocol version 3: defaults reach the next server, a server's own limits reach its later clients,
and nothing ever changes for a client that is connected.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_CLIENTS = 48
"""Clients on one GPU. Source: the same document, up to CUDA 13.0."""

_WHOLE_PERCENT = 100
_MIB_BY_SUFFIX = {"M": 1, "G": 1024}


class CommandRefused(Exception):
    """The daemon does not do that; the text is its answer."""


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
        """Take a client and return its limits, or raise :class:`CommandRefused`. The first starts the server."""
        if fault:
            raise CommandRefused("the MPS server is in state FAULT and takes no client")
        if table_full or len(self.clients) >= MAX_CLIENTS:
            raise CommandRefused(f"device busy or unavailable: {MAX_CLIENTS} clients are connected already")
        server = self.started_server()
        self.clients[connection] = pid
        return server.limits

    def disconnect(self, connection: int) -> None:
        """Forget a client; its server goes on."""
        self.clients.pop(connection, None)

    def started_server(self) -> Server:
        """Return the server, started with the daemon's defaults when there was none."""
        if self.server is None:
            limits = Limits(self.defaults.sm_percent, self.defaults.memory_mib)
            self.server = Server(pid=self.server_pid, limits=limits)
        return self.server

    def command(self, text: str, *, fault: bool = False, ignore_memory: bool = False) -> str:
        """Do one command and return what NVIDIA's program would print, or raise :class:`CommandRefused`."""
        name, *words = text.split()
        if name == "get_server_status":
            self._server(words)
            return "FAULT" if fault else "ACTIVE"
        if ignore_memory and name.startswith("set_") and name.endswith("_pinned_mem_limit"):
            return ""  # accepted and not done
        commands: dict[str, Callable[[list[str]], str]] = {
            "get_server_list": lambda _: "" if self.server is None else str(self.server.pid),
            "start_server": self._start_server,
            "get_client_list": self._client_list,
            "get_default_active_thread_percentage": lambda _: str(self.defaults.sm_percent),
            "set_default_active_thread_percentage": lambda words: _set_percent(self.defaults, words, 0),
            "get_active_thread_percentage": lambda words: str(self._server(words).limits.sm_percent),
            "set_active_thread_percentage": lambda words: _set_percent(self._server(words).limits, words, 1),
            "get_default_device_pinned_mem_limit": lambda words: _memory(self.defaults, words, 0),
            "set_default_device_pinned_mem_limit": lambda words: _set_memory(self.defaults, words, 0),
            "get_device_pinned_mem_limit": lambda words: _memory(self._server(words).limits, words, 1),
            "set_device_pinned_mem_limit": lambda words: _set_memory(self._server(words).limits, words, 1),
        }
        if name not in commands:
            raise CommandRefused(f"{name}: no such command")
        return commands[name](words)

    def _start_server(self, _words: list[str]) -> str:
        self.started_server()
        return ""

    def _client_list(self, words: list[str]) -> str:
        self._server(words)
        return "\n".join(str(pid) for pid in self.clients.values())

    def _server(self, words: list[str]) -> Server:
        given = _word(words, 0, "the process id of a server")
        if self.server is None or given != str(self.server.pid):
            raise CommandRefused(f"no server has the process id {given}")
        return self.server


def _word(words: list[str], place: int, meaning: str) -> str:
    if len(words) <= place:
        raise CommandRefused(f"the command needs {meaning}")
    return words[place]


def _set_percent(limits: Limits, words: list[str], place: int) -> str:
    text = _word(words, place, "a percentage")
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]+)?", text, re.ASCII) or not 0 < float(text) <= _WHOLE_PERCENT:
        raise CommandRefused(f"{text}: must be a percentage above 0 and at most 100")
    limits.sm_percent = float(text)
    return ""


def _check_device(words: list[str], place: int) -> None:
    device = _word(words, place, "a device")
    if device != "0":
        raise CommandRefused(f"{device}: the only device of this daemon is 0")


def _memory(limits: Limits, words: list[str], place: int) -> str:
    _check_device(words, place)
    return "" if limits.memory_mib is None else f"{limits.memory_mib}M"


def _set_memory(limits: Limits, words: list[str], place: int) -> str:
    _check_device(words, place)
    text = _word(words, place + 1, "a limit such as 4096M")
    parts = re.fullmatch(r"([0-9]{1,9})([MG])", text, re.ASCII)
    if parts is None:
        raise CommandRefused(f"{text}: must be an integer followed by M or G")
    limits.memory_mib = int(parts[1]) * _MIB_BY_SUFFIX[parts[2]]
    return ""
