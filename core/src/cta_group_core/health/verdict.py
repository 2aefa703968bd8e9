"""A GPU's health as the rest of the product needs it: what may be handed out, why not, and what to do about it."""

from dataclasses import dataclass

from cta_group_core.health.evidence import Repair
from cta_group_core.health.faults import polls_needed
from cta_group_core.health.machine import DEFAULT_RULES
from cta_group_core.health.state import Fault, FaultKind, GpuState, HealthRules, Phase


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from a state. Running containers are never touched by it."""

    phase: Phase
    whole: bool
    """The whole GPU may be handed out."""
    fractions: bool
    """A part of it may: it is well, and its MPS daemon is not known to be down."""
    reason: str
    """Why something may not be handed out, one sentence without a full stop; empty when everything may."""
    since: float | None
    """When that began, in the caller's seconds."""
    advice: str
    """What a person should do; empty when it needs nobody."""
    may_call_driver: bool
    """False while calls to the driver about this GPU may never return."""
    notice: str
    """Worth knowing of a GPU that goes on; empty when there is nothing."""


def verdict_of(state: GpuState, rules: HealthRules = DEFAULT_RULES) -> Verdict:
    """Return what follows from a state."""
    whole = state.phase is Phase.HEALTHY
    return Verdict(
        phase=state.phase,
        whole=whole,
        fractions=whole and state.mps_ready,
        reason=_reason(state, rules),
        since=state.since if not whole else (state.mps.since if state.mps else None),
        advice=_advice(state),
        may_call_driver=not any(fault.calls_may_hang for fault in state.faults),
        notice=state.notice,
    )


def _reason(state: GpuState, rules: HealthRules) -> str:
    told = _told(state)
    if told is None:
        return f"only the whole GPU can be handed out: {state.mps.reason}" if state.mps else ""
    if state.phase is Phase.RECOVERING:
        return f"{told.reason}; that is over, {state.clean_polls} of {polls_needed(state, rules)} clean polls since"
    if state.phase is Phase.SUSPECT:
        return f"{told.reason}; nothing new starts here until it is known whether the GPU is well"
    return told.reason


def _told(state: GpuState) -> Fault | None:
    """Return the fault that people are told: a hard one before a suspicion, an open one before one that is over."""
    return max(state.faults, key=lambda fault: (fault.is_hard, fault.is_open, fault.needs), default=None)


_RESET = (
    "move the pods of this GPU to another one, then reset it with nvidia-smi --gpu-reset (no process may use it, its "
    "MPS daemon included) or restart the node; it comes back by itself"
)
_REBOOT = "drain the node and restart it, with a power cycle if that does not help; the GPU comes back by itself"
_ADVICE_BY_REPAIR = {Repair.RESET: _RESET, Repair.REBOOT: _REBOOT}
_ADVICE_BY_KIND = {
    FaultKind.LOST: "look for the GPU's XID in the kernel log; if it does not come back by itself, restart the node",
    FaultKind.SILENT: "look at the kernel log; if it does not answer again by itself, restart the node",
    FaultKind.ROW_REMAP: "drain the node and have the GPU's memory tested; it may have to be replaced",
    FaultKind.RECOVERY_ACTION: "do what the driver asks for; nvidia-smi -q shows it as GPU Recovery Action",
}


def _advice(state: GpuState) -> str:
    told = _told(state)
    if told is None:
        return _mps_advice(state)
    if not told.is_hard:
        return ""
    return _ADVICE_BY_REPAIR.get(told.needs) or _ADVICE_BY_KIND.get(told.kind, "")


def _mps_advice(state: GpuState) -> str:
    if state.mps is None:
        return ""
    if state.mps.is_fault:
        return "the pods with a part of this GPU have lost their CUDA contexts: restart those that did not end"
    return "look at the log of the MPS supervisor on this node"
