"""Who is on the GPUs of the node, as it is told to others. Values only."""

from dataclasses import dataclass
from typing import Final

from cta_group_plugin.ports import PodName

_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Unlimited:
    """A process that runs without the limits of its pod's slice."""

    pid: int
    name: str
    pod: PodName | None
    """None: nobody knows the name of the pod whose UID its cgroup says."""
    container_id: str | None

    @property
    def words(self) -> str:
        """Say who it is and what is wrong with it."""
        whose = f"of pod {self.pod.namespace}/{self.pod.name}" if self.pod else "of a pod that holds groups"
        return (
            f"process {self.pid} ({self.name}) {whose} is no client of the GPU's MPS daemon, so it runs without limits"
        )


@dataclass(frozen=True, slots=True)
class Foreign:
    """A process that belongs to no tenant."""

    pid: int
    name: str
    memory_mib: int | None
    """Rounded up. ``None``: the driver does not tell."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Who is on one GPU beside tenants who are held to their limits."""

    problem: str = ""
    """Why not every process there could be told apart, in words; empty when each was."""
    unlimited: tuple[Unlimited, ...] = ()
    foreign: tuple[Foreign, ...] = ()
    late_mib: int = 0
    """Memory of ended processes that was not given back yet."""
    lists_foreign: bool = True
    """False: nobody here could tell a foreign process."""

    @property
    def foreign_mib(self) -> int | None:
        """Memory of foreign processes; None where it cannot be told."""
        figures = [process.memory_mib for process in self.foreign]
        return sum(figure or 0 for figure in figures) if self.lists_foreign and None not in figures else None

    @property
    def foreign_words(self) -> str:
        """Name the foreign processes; empty when there is none."""
        named = [f"{process.name} (pid {process.pid})" for process in self.foreign[:_NAMED]]
        more = len(self.foreign) - len(named)
        return ", ".join([*named, f"{more} more"] if more else named)
