"""Whose each process on a GPU is, at one look. Pure.

A *tenant* belongs to a pod that holds groups of the GPU and keeps its limits: as a client of the GPU's MPS daemon, or
because its pod has the whole GPU. A process of such a pod that is no client of that daemon is *unlimited*; one of any
other pod, or of the host, is *foreign*. What cannot be told is left open, never guessed:

* a process that has no memory on the GPU has no context yet (``cuInit`` alone), so it cannot have left its limits;
* the list of the daemon's clients says nothing about who came after it was asked, and nothing at all where it names
  processes that cannot be seen from here;
* without kubelet's record nobody knows which pods hold groups, and where kubelet makes no cgroups for pods nobody knows
  which pod a process is in.

One look is not enough to accuse anybody: see :mod:`cta_group_plugin.occupancy`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from cta_group_plugin.gpu_source import GpuUse, ProcessFacts
from cta_group_plugin.pod_cgroups import PodOfProcess
from cta_group_plugin.ports import GpuProcess, PodDevices

_PART_OF_MPS: Final = "nvidia-cuda-mps"
"""Start of the names of the MPS server and of its control daemon, as the kernel cuts them at 15 letters."""


class Kind(Enum):
    """Whose a process is."""

    TENANT = "tenant"
    UNLIMITED = "unlimited"
    FOREIGN = "foreign"
    MPS = "mps"
    """The server or the control daemon of MPS."""
    ENDED = "ended"
    """It has ended, and the driver still tells of it."""
    UNSEEN = "unseen"
    """It cannot be seen from here: of another process-id namespace."""
    UNDECIDED = "undecided"


ProcessKey = tuple[int, int]
"""Process id and start time: no other process ever has both."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """A process on a GPU, and whose it is."""

    pid: int
    kind: Kind
    memory_mib: int | None
    """``None``: the driver does not tell."""
    started_ticks: int = 0
    name: str = ""
    pod: PodOfProcess | None = None
    """The pod that it runs in, whether or not it holds groups."""

    @property
    def key(self) -> ProcessKey:
        """What tells it from every other process."""
        return self.pid, self.started_ticks


@dataclass(frozen=True, slots=True)
class GpuLook:
    """What was found on one GPU at one moment."""

    at: float
    """When the driver was asked, seconds of the node's account."""
    use: GpuUse
    processes: Mapping[int, ProcessFacts] | None
    """``None``: the host's processes cannot be seen here at all."""
    sees_all: bool
    """No living process of the machine is out of sight."""
    pods: tuple[PodDevices, ...] | None
    """kubelet's record, read after the driver was asked. ``None``: it cannot be read."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a GPU is used for, as far as it decides whose a process is."""

    pods: Mapping[str, bool] | None
    """The pods that hold groups of it by UID, and whether one has it whole. ``None``: not known."""
    is_limited: bool
    """Parts of it are limited at all."""
    clients: Collection[int]
    """The clients of its MPS daemon, as it told last."""
    clients_are_told: bool
    """That daemon answered last time, and named only processes that can be seen from here."""


def occupants_of(look: GpuLook, place: Place) -> tuple[Occupant, ...]:
    """Return every process that the driver told, with whose it is."""
    return tuple(_occupant(process, look, place) for process in look.use.processes)


def _occupant(process: GpuProcess, look: GpuLook, place: Place) -> Occupant:
    facts = (look.processes or {}).get(process.pid)
    if facts is None:
        # A driver translates ids into this namespace, so one that it names and nobody sees is of a process that ended.
        gone = look.processes is not None and (process.pid > 0 or look.sees_all)
        return Occupant(process.pid, Kind.ENDED if gone else Kind.UNSEEN, process.memory_mib)
    may_be_client = process.is_mps_client or not look.use.lists_clients
    kind = Kind.ENDED if facts.has_ended else _kind_of_living(process, facts, place, may_be_client=may_be_client)
    return Occupant(process.pid, kind, process.memory_mib, facts.started_ticks, facts.name, facts.pod)


def _kind_of_living(process: GpuProcess, facts: ProcessFacts, place: Place, *, may_be_client: bool) -> Kind:
    uid = facts.pod.uid if facts.pod else None
    is_whole = (place.pods or {}).get(uid) if uid else None
    if is_whole is not None:
        return Kind.TENANT if is_whole else _kind_in_slice(process, place, may_be_client=may_be_client)
    if process.pid in place.clients:
        return Kind.TENANT
    if facts.name.startswith(_PART_OF_MPS):
        return Kind.MPS
    is_of_some_pod = facts.pod is not None and uid is None
    return Kind.UNDECIDED if place.pods is None or is_of_some_pod else Kind.FOREIGN


def _kind_in_slice(process: GpuProcess, place: Place, *, may_be_client: bool) -> Kind:
    if not place.is_limited or process.memory_mib == 0 or process.pid in place.clients:
        return Kind.TENANT
    if may_be_client and not place.clients_are_told:
        return Kind.UNDECIDED
    return Kind.UNLIMITED
