"""Which processes on a GPU are no tenants of ours, and which tenants run past their limits.

By the same rules as the plugin's own account (:mod:`cta_group_plugin.occupants`), but at one look: a person reads what
doctor says, and can look again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cta_group_core.compatibility.gpu_findings import ForeignProcess
from cta_group_core.errors import InvalidText
from cta_group_core.ids import GpuUuid, GroupId
from cta_group_plugin.adapters.host_processes import HostProcesses
from cta_group_plugin.gpu_source import GpuUse
from cta_group_plugin.occupants import GpuLook, Kind, Occupant, Place, occupants_of
from cta_group_plugin.ports import GpuProcess, MpsState, PodDevices

UNKNOWN: Final = "a process that cannot be seen from here"

Tenants = Mapping[GpuUuid, frozenset[str]]
"""UIDs of the pods that hold groups of each GPU."""


@dataclass(frozen=True, slots=True)
class GpuUsers:
    """Who is on a GPU beside tenants within their limits."""

    foreign: tuple[ForeignProcess, ...] = ()
    unlimited: tuple[ForeignProcess, ...] = ()


def tenants_of(record: Iterable[PodDevices] | None, meaning_of: Callable[[str], GroupId]) -> Tenants | None:
    """Return the pods on each GPU by kubelet's record; None where that cannot be read."""
    if record is None:
        return None
    found: dict[GpuUuid, frozenset[str]] = {}
    for held in record:
        for text in held.ids:
            with suppress(InvalidText):  # another plugin gave it out under our name before
                gpu = meaning_of(text).gpu
                found[gpu] = found.get(gpu, frozenset()) | {held.pod_uid}
    return found


def users_of(
    on_gpus: Mapping[GpuUuid, Sequence[GpuProcess]],
    mps: Mapping[GpuUuid, MpsState],
    root: Path,
    tenants: Tenants | None = None,
) -> dict[GpuUuid, GpuUsers]:
    """Return who is on each GPU. Names and pods are those of the host whose root is ``root``.

    Without ``tenants`` whoever is no client of the GPU's MPS daemon is foreign, and nobody is without limits.
    """
    host = HostProcesses(root / "proc")
    return {
        gpu: _users(processes, mps.get(gpu), host, None if tenants is None else tenants.get(gpu, frozenset()))
        for gpu, processes in on_gpus.items()
    }


def _users(
    processes: Sequence[GpuProcess], state: MpsState | None, host: HostProcesses, pods: frozenset[str] | None
) -> GpuUsers:
    seen = host.look(process.pid for process in processes)
    # One that the host does not show may be of another namespace here: doctor need not share the host's process ids.
    look = GpuLook(0.0, GpuUse(processes=tuple(processes)), seen, sees_all=False, pods=())
    clients = frozenset(state.client_pids) if state else frozenset()
    place = Place(
        dict.fromkeys(pods or (), False), is_limited=True, clients=clients, clients_are_told=state is not None
    )
    found = [one for one in occupants_of(look, place) if one.pid not in clients]
    outside = {process.pid for process in processes if not process.is_mps_client}
    unseen = [one for one in found if one.pid not in seen and one.pid in outside]
    # Where a daemon is kept, one of those that cannot be seen is its server, which needs less than any tenant.
    server = sorted(unseen, key=lambda one: one.memory_mib or 0)[: 1 if state is not None else 0]
    strangers = [one for one in found if one.kind is Kind.FOREIGN and (pods is not None or one.pid in outside)]
    return GpuUsers(
        foreign=tuple(_named(one) for one in (*strangers, *unseen) if one not in server),
        unlimited=tuple(_named(one) for one in found if one.kind is Kind.UNLIMITED),
    )


def _named(one: Occupant) -> ForeignProcess:
    return ForeignProcess(one.pid, one.name or UNKNOWN, one.memory_mib or 0)
