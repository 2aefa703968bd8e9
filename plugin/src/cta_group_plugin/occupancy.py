"""Who is on a GPU, from one look to the next. Pure.

**Nobody is accused after one look.** A process that seems unlimited or foreign must be the same (id and start time) at
another look, two seconds later or more, and the daemon must have told its clients in between: a client that connects is
listed by the driver a moment before its daemon lists it, one that ends is listed a moment longer, and a pod that ends
leaves kubelet's record before its processes are gone.

**Memory of processes that have ended** may come back late. It is not what is in use less what living processes have: a
driver keeps some memory for itself, and not every driver lists every process. So that difference is compared with what
it was while nobody had ended (the *floor*), and counts only as far as processes that were seen are gone::

    unexplained = in use - memory of living processes (MPS' own left out)
    late        = min(memory of those that are gone, unexplained - floor), or what the driver still names of them

A neighbour that takes memory, a foreign one too, is alive and explains it. Where any of that is not told, nothing is
late.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from cta_group_plugin.occupants import GpuLook, Kind, Occupant, ProcessKey

_SETTLED_SECONDS: Final = 2.0
"""A process that seems to be out of place for less than this may only be coming or going."""
_TOLERANCE_MIB: Final = 512
"""Late memory below this is noise: figures of two moments, and contexts that come and go."""

_LIVING: Final = frozenset({Kind.TENANT, Kind.UNLIMITED, Kind.FOREIGN, Kind.UNDECIDED})


@dataclass(frozen=True, slots=True)
class GpuAccount:
    """What is known of one GPU's users after some looks."""

    at: float
    foreign: tuple[Occupant, ...] = ()
    unlimited: tuple[Occupant, ...] = ()
    is_seen: bool = True
    """Every process that the driver tells of can be told apart, as far as one look can."""
    since: Mapping[ProcessKey, float] = field(default_factory=lambda: MappingProxyType({}))
    """When each process that seems out of place was first seen so."""
    late_mib: int = 0
    """Memory of processes that have ended and was not given back."""
    late_since: float | None = None
    living: Mapping[ProcessKey, int] = field(default_factory=lambda: MappingProxyType({}))
    """Memory of the processes that lived at the last look."""
    gone_mib: int = 0
    """Memory of those that are gone since the floor was taken."""
    floor_mib: int | None = None
    """What no living process explained while nobody had ended. ``None``: it cannot be told."""


def after_look(
    before: GpuAccount | None, look: GpuLook, occupants: Iterable[Occupant], *, clients_asked_at: float | None
) -> GpuAccount:
    """Return the account after one more look; ``clients_asked_at`` is when the GPU's daemon told its clients last.

    ``None``: it does not tell, and the driver alone says who is a client.
    """
    occupants = tuple(occupants)
    astray = [one for one in occupants if one.kind in {Kind.UNLIMITED, Kind.FOREIGN}]
    known = before.since if before else {}
    since = {one.key: known.get(one.key, look.at) for one in astray}

    def is_settled(one: Occupant) -> bool:
        asked_between = clients_asked_at is None or clients_asked_at > since[one.key]
        return look.at - since[one.key] >= _SETTLED_SECONDS and (one.kind is Kind.FOREIGN or asked_between)

    memory = _memory_after(before, look, occupants)
    return GpuAccount(
        at=look.at,
        foreign=tuple(one for one in astray if one.kind is Kind.FOREIGN and is_settled(one)),
        unlimited=tuple(one for one in astray if one.kind is Kind.UNLIMITED and is_settled(one)),
        is_seen=all(one.kind not in {Kind.UNSEEN, Kind.UNDECIDED} for one in occupants),
        since=since,
        late_mib=memory.late_mib,
        late_since=_late_since(before, look) if memory.late_mib else None,
        living=memory.living,
        gone_mib=memory.gone_mib,
        floor_mib=memory.floor_mib,
    )


def _late_since(before: GpuAccount | None, look: GpuLook) -> float:
    return look.at if before is None or before.late_since is None else before.late_since


@dataclass(frozen=True, slots=True)
class _Memory:
    living: Mapping[ProcessKey, int] = field(default_factory=lambda: MappingProxyType({}))
    gone_mib: int = 0
    floor_mib: int | None = None
    late_mib: int = 0


def _memory_after(before: GpuAccount | None, look: GpuLook, occupants: tuple[Occupant, ...]) -> _Memory:
    living = {one.key: one.memory_mib for one in occupants if one.kind in _LIVING}
    told = {key: mib for key, mib in living.items() if mib is not None}
    is_told = look.use.lists_processes and len(told) == len(living)
    if look.use.used_mib is None or not is_told or any(one.kind is Kind.UNSEEN for one in occupants):
        return _Memory()
    unexplained = max(0, look.use.used_mib - sum(told.values()))
    named = sum(one.memory_mib or 0 for one in occupants if one.kind is Kind.ENDED)
    floor = max(0, unexplained - named)
    if before is None or before.floor_mib is None:
        late, gone, kept_floor = named, 0, floor
    else:
        gone = before.gone_mib + sum(mib for key, mib in before.living.items() if key not in told)
        late, kept_floor = max(named, min(gone, unexplained - before.floor_mib)), before.floor_mib
    late = min(late, unexplained)
    if late <= _TOLERANCE_MIB:
        return _Memory(told, 0, floor, 0)
    return _Memory(told, gone, kept_floor, late)
