"""The health of this node's GPUs: what was seen of each goes in, which may take new work comes out. Pure.

``cta_group_core.health`` decides about one GPU; here are all of them, and what a poll of them means.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Self

from cta_group_core.health.evidence import ResetEvidence
from cta_group_core.health.inputs import (
    EccRead,
    FoundAgain,
    Lost,
    PollFailed,
    PollOk,
    RecoveryActionRead,
    ResetSeen,
    RowRemapRead,
    Seen,
    XidSeen,
)
from cta_group_core.health.machine import step
from cta_group_core.health.state import GpuState, HealthRules, Phase
from cta_group_core.health.verdict import Verdict, verdict_of
from cta_group_core.health.xid_catalogue import XidClass
from cta_group_core.ids import GpuUuid
from cta_group_plugin.gpu_source import Vitals
from cta_group_plugin.ports import BrokenGpu, GpuEvent, GpuEventKind

Faults = Mapping[GpuUuid, Verdict]
"""The GPUs that may not take all kinds of new work now, each with why."""

_MOST_ABSENT: Final = 32
"""GPUs on record that this node does not have now: one that comes back broken is not taken for a new one."""


@dataclass(frozen=True)
class Health:
    """Every GPU of which something was seen. Times are seconds since the epoch, since they outlive the process."""

    rules: HealthRules = field(default_factory=HealthRules)
    states: Mapping[GpuUuid, GpuState] = field(default_factory=lambda: MappingProxyType({}))
    xids: Mapping[tuple[GpuUuid, XidClass], int] = field(default_factory=lambda: MappingProxyType({}))
    """XIDs of each class since this process started."""
    faults: Faults = field(init=False, compare=False)

    def __post_init__(self) -> None:
        verdicts = {uuid: verdict_of(state, self.rules) for uuid, state in self.states.items()}
        faults = {uuid: verdict for uuid, verdict in verdicts.items() if not (verdict.whole and verdict.fractions)}
        object.__setattr__(self, "faults", MappingProxyType(faults))

    def after(self, seen: Mapping[GpuUuid, Iterable[Seen]], *, now: float) -> Self:
        """Return the health after these observations; the same object where they change nothing."""
        states, xids = dict(self.states), dict(self.xids)
        for uuid, each in ((uuid, each) for uuid, all_of_it in seen.items() for each in all_of_it):
            states[uuid] = step(states.get(uuid, GpuState()), each, now, self.rules)
            if isinstance(each, XidSeen):
                key = (uuid, self.rules.policy.rule_of(each.code).xid_class)
                xids[key] = xids.get(key, 0) + 1
        if (states, xids) == (self.states, self.xids):
            return self
        return replace(self, states=MappingProxyType(states), xids=MappingProxyType(xids))

    def repaired(self, evidence: Iterable[ResetEvidence], *, now: float, only: Collection[GpuUuid] = ()) -> Self:
        """Return the health after proof of a repair of all GPUs, or ``only`` of some."""
        seen = [ResetSeen(each) for each in evidence]
        return self.after({uuid: seen for uuid in self.states if not only or uuid in only}, now=now)

    def without_absent(self, present: Collection[GpuUuid]) -> Self:
        """Return the health of the GPUs that are there, and of those away that were broken, the newest of them."""
        absent = [uuid for uuid in self.states if uuid not in present and self.states[uuid].faults]
        newest = sorted(absent, key=lambda uuid: self.states[uuid].since or 0.0)[-_MOST_ABSENT:]
        states = {uuid: state for uuid, state in self.states.items() if uuid in {*present, *newest}}
        return self if states == self.states else replace(self, states=MappingProxyType(states))

    def notice(self, uuid: GpuUuid) -> str:
        """Return what is worth knowing of a GPU that goes on; empty when there is nothing."""
        return self.states[uuid].notice if uuid in self.states else ""

    def may_call_driver(self, uuid: GpuUuid | None) -> bool:
        """Tell whether the driver can be asked about a GPU; False while such a call may never return."""
        fault = self.faults.get(uuid) if uuid else None
        return fault is None or fault.may_call_driver


def is_out(fault: Verdict | None) -> bool:
    """Tell whether a GPU is known to be broken, rather than held back until more is known."""
    return fault is not None and fault.phase is Phase.UNHEALTHY


def seen_in_event(event: GpuEvent) -> Mapping[GpuUuid, Sequence[Seen]]:
    """Return what an event says. One without a GPU says nothing of any: every GPU is to be asked then."""
    if event.uuid is None:
        return {}
    match event.kind:
        case GpuEventKind.XID:
            return {event.uuid: (XidSeen(event.xid or 0),)}
        case GpuEventKind.LOST:
            return {event.uuid: (Lost(event.detail),)}
        case GpuEventKind.RECOVERED:
            return {event.uuid: (FoundAgain(),)}


def seen_in_answer(vitals: Vitals) -> tuple[Seen, ...]:
    """Return what the answers of a GPU say. That it answered comes last: it counts once everything else is known."""
    seen: list[Seen] = [RecoveryActionRead(vitals.recovery_action)]
    if vitals.remap_failed is not None:
        seen.append(RowRemapRead(vitals.remap_failed))
    if vitals.double_bit_errors is not None:
        seen.append(EccRead(vitals.double_bit_errors))
    return (*seen, PollOk())


def seen_in_silence(gpu: BrokenGpu) -> tuple[Seen, ...]:
    """Return what it says that a GPU did not answer."""
    return (Lost(gpu.reason),) if gpu.is_lost else (PollFailed(gpu.reason),)


def seen_in_absence(served: Iterable[GpuUuid], listed: Collection[GpuUuid]) -> Mapping[GpuUuid, Sequence[Seen]]:
    """Return what it says that the driver does not list GPUs any more."""
    return {uuid: (Lost("the driver does not list it any more"),) for uuid in served if uuid not in listed}
