"""The clients of one GPU's daemon, as far as it told: who they are, who of them lives, and who died with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cta_group_plugin.mps.processes import Process


@dataclass(frozen=True, slots=True)
class _Client:
    pid: int
    process: Process | None
    """None: not visible from here, so nobody can say whether it lives."""

    @property
    def may_live(self) -> bool:
        return self.process is None or self.process.is_alive()


@dataclass(slots=True)
class ClientTable:
    """The clients of each server, by the daemon's last answer."""

    _by_server: dict[int, tuple[_Client, ...]] = field(default_factory=dict)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids in ascending order, each once."""
        return tuple(sorted({client.pid for clients in self._by_server.values() for client in clients}))

    def living(self) -> int:
        """Return how many of them may still live, also while the daemon does not answer."""
        return len({client.pid for clients in self._by_server.values() for client in clients if client.may_live})

    def learn(self, told: Mapping[int, Sequence[int]]) -> dict[int, tuple[int, ...]]:
        """Take the daemon's answer; return, for each server that has gone, the clients that it had.

        Clients live and die with the server that they are connected to.
        """
        gone = {server: self._pids_of(server) for server in self._by_server.keys() - told.keys()}
        known = {client.pid: client for clients in self._by_server.values() for client in clients if client.may_live}
        self._by_server = {
            server: tuple(known.get(pid) or _Client(pid, Process.with_pid(pid)) for pid in pids)
            for server, pids in told.items()
        }
        return {server: pids for server, pids in gone.items() if pids}

    def forget(self) -> tuple[int, ...]:
        """Note that the daemon has ended; return the clients that it had."""
        pids = self.pids
        self._by_server = {}
        return pids

    def _pids_of(self, server: int) -> tuple[int, ...]:
        return tuple(sorted({client.pid for client in self._by_server[server]}))
