"""How the faults of a GPU begin, end and are forgotten."""

from dataclasses import replace

from cta_group_core.health.evidence import Repair
from cta_group_core.health.state import Fault, FaultKind, GpuState, HealthRules

_ORDER = list(FaultKind)
_ENDED_BY_REPAIR = frozenset({FaultKind.XID, FaultKind.RECOVERY_ACTION})


def add(state: GpuState, fault: Fault, rules: HealthRules) -> GpuState:
    """Return the state with a fault that was seen just now; the count of clean polls begins anew."""
    relapses = state.relapses
    if not state.faults:
        relapses = state.relapses + 1 if _is_relapse(state, fault.since, rules) else 0
    before = state.fault(fault.kind)
    merged = _merged(before, fault) if before else fault
    return replace(_with(state, merged), clean_polls=0, relapses=relapses)


def close(state: GpuState, kind: FaultKind) -> GpuState:
    """Return the state in which what a fault needed was seen; it stays on record until the GPU is healthy."""
    fault = state.fault(kind)
    if fault is None or not fault.is_open:
        return state
    return _with(state, replace(fault, is_open=False, calls_may_hang=False))


def repair(state: GpuState, proved: Repair) -> GpuState:
    """Return the state after a repair was proved; faults that need a larger one stay open."""
    for fault in state.faults:
        if fault.kind in _ENDED_BY_REPAIR and fault.needs <= proved:
            state = close(state, fault.kind)
    return close(state, FaultKind.SUSPICION)


def driver_asks(state: GpuState) -> GpuState:
    """Return the state after the driver asked for a repair: it knows of everything that happened until now."""
    return replace(state, faults=tuple(replace(fault, driver_asks=True) for fault in state.faults))


def driver_is_content(state: GpuState) -> GpuState:
    """Return the state after the driver asked for nothing.

    A reset by ``nvidia-smi --gpu-reset`` leaves no other trace than that: what the driver asked for before is done. It
    proves nothing about an error that the driver never asked about.
    """
    asked = state.fault(FaultKind.RECOVERY_ACTION)
    if asked is None or not asked.is_open:
        return state
    xid = state.fault(FaultKind.XID)
    if xid is not None and xid.driver_asks and xid.needs <= asked.needs:
        state = close(state, FaultKind.XID)
    return close(state, FaultKind.RECOVERY_ACTION)


def confirm_suspicion(state: GpuState, problem: str, now: float, rules: HealthRules) -> GpuState:
    """Return the state in which an open suspicion became a certainty, since the GPU failed a poll."""
    suspicion = state.fault(FaultKind.SUSPICION)
    if suspicion is None or not suspicion.is_open or suspicion.needs is Repair.NONE:
        return state
    reason = f"{suspicion.reason}, and then it did not answer" + (f" ({problem})" if problem else "")
    fault = replace(suspicion, kind=FaultKind.XID, reason=reason, latest=now)
    return close(add(state, fault, rules), FaultKind.SUSPICION)


def answered(state: GpuState, now: float, rules: HealthRules) -> GpuState:
    """Return the state after a clean poll: healthy once there were enough of them and nothing is open any more."""
    state = replace(close(close(state, FaultKind.LOST), FaultKind.SILENT), failed_polls=0)
    if not state.faults or any(fault.is_hard for fault in state.faults):
        return state
    clean = state.clean_polls + 1
    state = _reanchored(replace(state, clean_polls=clean), now)
    if clean < polls_needed(state, rules) or _in_quarantine(state, now, rules):
        return state
    return replace(state, faults=(), clean_polls=0, healed_at=now)


def polls_needed(state: GpuState, rules: HealthRules) -> int:
    """Return how many polls in a row the GPU must answer; more when it came and went before."""
    return rules.clean_polls << min(state.relapses, rules.most_doublings)


def _is_relapse(state: GpuState, now: float, rules: HealthRules) -> bool:
    return state.healed_at is not None and now - state.healed_at < rules.calm_seconds


def _in_quarantine(state: GpuState, now: float, rules: HealthRules) -> bool:
    suspicion = state.fault(FaultKind.SUSPICION)
    return suspicion is not None and suspicion.is_open and now - suspicion.latest < rules.quarantine_seconds


def _reanchored(state: GpuState, now: float) -> GpuState:
    """Return the state with no suspicion from the future: a clock that was set back must not lengthen it by years."""
    suspicion = state.fault(FaultKind.SUSPICION)
    if suspicion is None or suspicion.latest <= now:
        return state
    return _with(state, replace(suspicion, latest=now))


def _merged(before: Fault, fault: Fault) -> Fault:
    """Return one fault for two of a kind: it began with the first, and tells of the one that needs more.

    What the driver asks for is always the newest word. One that was over has no say any more except when it began.
    """
    if not before.is_open or fault.kind is FaultKind.RECOVERY_ACTION:
        return replace(fault, since=before.since)
    told = fault if fault.needs > before.needs else before
    hangs = before.calls_may_hang or fault.calls_may_hang
    return replace(told, since=before.since, latest=fault.latest, calls_may_hang=hangs, driver_asks=False)


def _with(state: GpuState, fault: Fault) -> GpuState:
    others = [other for other in state.faults if other.kind is not fault.kind]
    ordered = sorted([*others, fault], key=lambda each: _ORDER.index(each.kind))
    return replace(state, faults=tuple(ordered))
