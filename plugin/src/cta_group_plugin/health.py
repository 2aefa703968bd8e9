"""Which GPUs are unhealthy, and when they are healthy again. Pure: events and polls in, faults out.

Thin on purpose: lost, silent or vanished GPUs and XIDs that the driver's documents call fatal take a GPU out. A GPU
that was lost is back with the first poll in which it answers. After a fatal XID a poll proves nothing (the GPU answers
while its contexts are dead), so only the driver's word that it recovered brings it back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cta_group_core.ids import GpuUuid
from cta_group_plugin.ports import GpuEvent, GpuEventKind, Inventory

# Source: NVIDIA, "XID errors", those whose action is a reset or a replacement of the GPU.
FATAL_XIDS: Final = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140, 143})


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a GPU offers nothing now."""

    reason: str
    since: float
    """Seconds since the epoch."""
    answers_clear_it: bool
    """Whether a poll in which the GPU answers ends the fault."""


Faults = Mapping[GpuUuid, Fault]


def after_event(faults: Faults, event: GpuEvent, *, now: float) -> Faults:
    """Return the faults after an event. One without a GPU changes nothing: every GPU is to be polled then."""
    if event.uuid is None:
        return faults
    if event.kind is GpuEventKind.RECOVERED:
        return {uuid: fault for uuid, fault in faults.items() if uuid != event.uuid}
    if event.kind is GpuEventKind.LOST:
        return _with(faults, event.uuid, Fault(event.detail or "the GPU is lost", now, answers_clear_it=True))
    if event.xid in FATAL_XIDS:
        reason = f"XID {event.xid}" + (f": {event.detail}" if event.detail else "")
        return _with(faults, event.uuid, Fault(reason, now, answers_clear_it=False))
    return faults


def after_poll(faults: Faults, inventory: Inventory, *, served: Iterable[GpuUuid], now: float) -> Faults:
    """Return the faults after a poll of all GPUs; ``served`` are those that were offered until now."""
    answering = {gpu.uuid for gpu in inventory.gpus}
    after = {uuid: fault for uuid, fault in faults.items() if not (fault.answers_clear_it and uuid in answering)}
    silent = {gpu.uuid: gpu.reason for gpu in inventory.broken if gpu.uuid is not None}
    for uuid in {*served, *silent} - answering - after.keys():
        reason = silent.get(uuid, "the driver does not list this GPU any more")
        after[uuid] = Fault(reason, now, answers_clear_it=True)
    return after


def _with(faults: Faults, uuid: GpuUuid, fault: Fault) -> Faults:
    known = faults.get(uuid)
    if known and not known.answers_clear_it:
        return faults
    return {**faults, uuid: fault}
