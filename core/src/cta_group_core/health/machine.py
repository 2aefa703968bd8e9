"""One GPU's health from one observation to the next. Total: no order of observations is an error."""

from dataclasses import replace
from functools import singledispatch
from typing import Final

from cta_group_core.health import faults
from cta_group_core.health.evidence import Repair
from cta_group_core.health.inputs import (
    EccRead,
    FoundAgain,
    Lost,
    MpsAnswer,
    MpsRead,
    PollFailed,
    PollOk,
    RecoveryActionRead,
    ResetSeen,
    RowRemapRead,
    Seen,
    Suspected,
    XidSeen,
)
from cta_group_core.health.recovery_action import recovery_action_of
from cta_group_core.health.state import Fault, FaultKind, GpuState, HealthRules, MpsTrouble
from cta_group_core.health.xid_catalogue import XidClass, XidRule

DEFAULT_RULES: Final = HealthRules()


def step(state: GpuState, seen: Seen, now: float, rules: HealthRules = DEFAULT_RULES) -> GpuState:
    """Return the state after one observation, made at ``now`` (seconds of one and the same clock for all calls).

    A clock that is set back lengthens a quarantine by at most its own length. The state that went in comes back as
    the same object where the observation changes nothing.
    """
    after = _after(seen, state, now, rules)
    return state if after == state else after


@singledispatch
def _after(seen: Seen, _state: GpuState, _now: float, _rules: HealthRules) -> GpuState:
    raise TypeError(f"{type(seen).__name__} is not an observation of a GPU")


@_after.register
def _(seen: XidSeen, state: GpuState, now: float, rules: HealthRules) -> GpuState:
    rule = rules.policy.rule_of(seen.code)
    match rule.xid_class:
        case XidClass.APPLICATION:
            return state
        case XidClass.REPORT:
            return replace(state, notice=words_of(rule))
        case XidClass.SUSPECT:
            fault = Fault(FaultKind.SUSPICION, words_of(rule), now, now, needs=rule.repair)
        case XidClass.FATAL:
            fault = Fault(
                FaultKind.XID, words_of(rule), now, now, needs=rule.repair, calls_may_hang=rule.calls_may_hang
            )
    return faults.add(state, fault, rules)


@_after.register
def _(seen: Lost, state: GpuState, now: float, rules: HealthRules) -> GpuState:
    reason = f"the GPU is lost: {seen.detail}" if seen.detail else "the GPU is lost"
    return faults.add(state, Fault(FaultKind.LOST, reason, now, now), rules)


@_after.register
def _(_seen: FoundAgain, state: GpuState, _now: float, _rules: HealthRules) -> GpuState:
    return faults.close(state, FaultKind.LOST)


@_after.register
def _(seen: RecoveryActionRead, state: GpuState, now: float, rules: HealthRules) -> GpuState:
    if seen.value is None:
        return state
    action = recovery_action_of(seen.value)
    if action is None:
        return faults.driver_is_content(state)
    fault = Fault(FaultKind.RECOVERY_ACTION, f"the driver asks {action.asks_for}", now, now, needs=action.repair)
    return faults.driver_asks(faults.add(state, fault, rules))


@_after.register
def _(seen: RowRemapRead, state: GpuState, now: float, rules: HealthRules) -> GpuState:
    if not seen.failed:
        return faults.close(state, FaultKind.ROW_REMAP)
    reason = "a broken row of its memory could not be replaced by a spare one"
    return faults.add(state, Fault(FaultKind.ROW_REMAP, reason, now, now), rules)


@_after.register
def _(seen: EccRead, state: GpuState, now: float, rules: HealthRules) -> GpuState:
    before = state.double_bit_errors
    state = replace(state, double_bit_errors=seen.double_bit)
    if before is None or seen.double_bit <= before:
        return state
    # Contained or not is not in the counter; the XID and the recovery action that come with it tell.
    reason = f"its count of memory errors that cannot be corrected went from {before} to {seen.double_bit}"
    return faults.add(state, Fault(FaultKind.SUSPICION, reason, now, now, needs=Repair.RESET), rules)


@_after.register
def _(seen: MpsRead, state: GpuState, now: float, _rules: HealthRules) -> GpuState:
    if seen.answer is MpsAnswer.READY:
        return replace(state, mps=None)
    since = state.mps.since if state.mps else now
    is_fault = seen.answer is MpsAnswer.FAULT
    usual = "a fault ended the clients of its MPS daemon" if is_fault else "its MPS daemon does not answer"
    return replace(state, mps=MpsTrouble(seen.reason or usual, since, is_fault))


@_after.register
def _(_seen: PollOk, state: GpuState, now: float, rules: HealthRules) -> GpuState:
    return faults.answered(state, now, rules)


@_after.register
def _(seen: PollFailed, state: GpuState, now: float, rules: HealthRules) -> GpuState:
    state = replace(state, clean_polls=0, failed_polls=min(state.failed_polls + 1, rules.failed_polls))
    if state.failed_polls < rules.failed_polls:
        return state
    state = faults.confirm_suspicion(state, seen.problem, now, rules)
    reason = f"it does not answer: {seen.problem}" if seen.problem else "it does not answer"
    return faults.add(state, Fault(FaultKind.SILENT, reason, now, now), rules)


@_after.register
def _(seen: Suspected, state: GpuState, now: float, rules: HealthRules) -> GpuState:
    return faults.add(state, Fault(FaultKind.SUSPICION, seen.reason or "it is suspect", now, now), rules)


@_after.register
def _(seen: ResetSeen, state: GpuState, _now: float, _rules: HealthRules) -> GpuState:
    state = replace(state, notice="", double_bit_errors=None, clean_polls=0)
    return faults.repair(state, seen.evidence.proves)


def words_of(rule: XidRule) -> str:
    """Return an XID in words."""
    return f"XID {rule.code}: {rule.meaning}"
