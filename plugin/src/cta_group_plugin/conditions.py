"""The node's conditions and the words for the health of its GPUs. Pure: a view in, conditions without times out."""

from collections.abc import Iterable, Sequence
from typing import Final

from cta_group_core.health.state import Phase
from cta_group_core.health.verdict import Verdict
from cta_group_core.names import (
    CONDITION_CLIENTS_LIMITED,
    CONDITION_GPUS_HEALTHY,
    CONDITION_HOLDERS_KNOWN,
    CONDITION_MPS_READY,
    CONDITION_REGISTERED,
)
from cta_group_plugin.compatible import compatible
from cta_group_plugin.inventory import ServedGpu
from cta_group_plugin.mps_trouble import MpsTrouble
from cta_group_plugin.report import (
    HEALTHY,
    MPS_NOT_READY,
    ConditionReport,
    EnforcementReport,
    GpuReport,
    Truth,
)
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeView

_NAMED: Final = 20
"""Processes that a condition names: its message has an end."""

_WORST_FIRST: Final = (Phase.UNHEALTHY, Phase.SUSPECT, Phase.RECOVERING, Phase.HEALTHY)


def conditions_of(
    view: NodeView, enforcement: EnforcementSettings, gpus: Sequence[GpuReport] = (), *, max_clients: int = 0
) -> tuple[ConditionReport, ...]:
    """Return all conditions of a node, with its ``gpus`` as they are told; ``max_clients`` is the setting."""
    limits = EnforcementReport(enforcement.compute, enforcement.memory)
    notices = [f"GPU {gpu.facts.index}: {notice}" for gpu in view.offer.served for notice in notices_of(gpu, view)]
    return (
        _registered(view),
        _gpus_healthy(view),
        _mps_ready(view, enforcement),
        _clients_limited(view, enforcement),
        compatible(view, limits, gpus, max_clients=max_clients, notices=notices),
        _holders_known(view),
    )


def health_word(fault: Verdict | None) -> str:
    """Return a GPU's health in one word: how it is, or that only its MPS daemon is in the way."""
    if fault is None:
        return HEALTHY
    return MPS_NOT_READY if fault.phase is Phase.HEALTHY else fault.phase.value


def notices_of(gpu: ServedGpu, view: NodeView) -> Iterable[str]:
    """Return what is worth knowing of a GPU that goes on."""
    if gpu.notice:
        yield gpu.notice
    if gpu.facts.mig_pending:
        yield "MIG will be on after its next reset, and then it offers no groups"
    if notice := view.health.notice(gpu.facts.uuid):
        yield notice
    if occupancy := view.occupancy.get(gpu.facts.uuid):
        if occupancy.foreign:
            yield f"processes that are no tenants use it: {occupancy.foreign_words}"
        if occupancy.late_mib:
            yield "memory of an ended process was not given back yet"


def _registered(view: NodeView) -> ConditionReport:
    if view.registered_as:
        return _condition(CONDITION_REGISTERED, "True", "Registered", "kubelet knows this plugin")
    if not view.offer.served:
        return _condition(CONDITION_REGISTERED, "False", "NothingToOffer", "no GPU of this node offers groups")
    return _condition(
        CONDITION_REGISTERED,
        "False",
        "NotRegistered",
        view.registration_problem or "not registered with kubelet yet",
    )


def _gpus_healthy(view: NodeView) -> ConditionReport:
    if not view.offer.served:
        return _condition(CONDITION_GPUS_HEALTHY, "Unknown", "NoGpu", "no GPU of this node offers groups")
    ill = {uuid: fault for uuid, fault in view.faults.items() if not fault.whole and uuid in view.offer.by_uuid}
    if ill:
        worst = min((fault.phase for fault in ill.values()), key=_WORST_FIRST.index)
        told = "; ".join(f"{uuid}: {fault.reason}" for uuid, fault in sorted(ill.items()))
        return _condition(CONDITION_GPUS_HEALTHY, "False", f"Gpu{worst.value}", told)
    if view.driver_trouble:
        return _condition(CONDITION_GPUS_HEALTHY, "Unknown", "DriverDoesNotAnswer", view.driver_trouble)
    return _condition(CONDITION_GPUS_HEALTHY, "True", "AllHealthy", "every GPU answers")


def _mps_ready(view: NodeView, enforcement: EnforcementSettings) -> ConditionReport:
    if not enforcement.uses_mps:
        return _condition(CONDITION_MPS_READY, "Unknown", "NotUsed", "neither SMs nor memory are limited here")
    waiting = {uuid: state.reason for uuid, state in sorted(view.mps.items()) if not state.ready}
    if waiting:
        told = "; ".join(f"{uuid}: {reason}" for uuid, reason in waiting.items())
        return _condition(CONDITION_MPS_READY, "False", _mps_reason(view), told)
    return _condition(CONDITION_MPS_READY, "True", "Ready", f"{len(view.mps)} GPUs are shared, and each is limited")


def _clients_limited(view: NodeView, enforcement: EnforcementSettings) -> ConditionReport:
    if not enforcement.uses_mps:
        return _condition(CONDITION_CLIENTS_LIMITED, "Unknown", "NotUsed", "neither SMs nor memory are limited here")
    if view.inventory and view.inventory.simulated:
        return _condition(CONDITION_CLIENTS_LIMITED, "Unknown", "Simulated", "nothing runs on simulated GPUs")
    found = [(gpu, view.occupancy[gpu.facts.uuid]) for gpu in view.offer.served if gpu.facts.uuid in view.occupancy]
    if told := [f"GPU {gpu.facts.index}: {one.words}" for gpu, here in found for one in here.unlimited]:
        more = [f"{len(told) - _NAMED} more processes"] if len(told) > _NAMED else []
        return _condition(CONDITION_CLIENTS_LIMITED, "False", "UnlimitedProcess", "; ".join([*told[:_NAMED], *more]))
    if problems := sorted({here.problem for _, here in found if here.problem}):
        return _condition(CONDITION_CLIENTS_LIMITED, "Unknown", "NotSeen", "; ".join(problems))
    if not found:
        return _condition(CONDITION_CLIENTS_LIMITED, "Unknown", "NotAsked", "no GPU was asked yet who uses it")
    kept = "every process of a tenant keeps the limits of its slice"
    return _condition(CONDITION_CLIENTS_LIMITED, "True", "Limited", kept)


def _mps_reason(view: NodeView) -> str:
    """Return the worst that is wrong with a daemon: a fault has cost clients, silence may."""
    troubles = {state.trouble for state in view.mps.values() if not state.ready}
    if MpsTrouble.FAULT in troubles:
        return "Fault"
    return "Silent" if MpsTrouble.SILENT in troubles else "NotReady"


def _holders_known(view: NodeView) -> ConditionReport:
    if view.account_problem:
        told = f"{view.account_problem}; kubelet.rootDir of the chart's values must be kubelet's --root-dir"
        return _condition(CONDITION_HOLDERS_KNOWN, "False", "KubeletUnavailable", told)
    if not view.holders_are_known:
        return _condition(CONDITION_HOLDERS_KNOWN, "Unknown", "NotAsked", "kubelet was not asked yet who holds what")
    return _condition(CONDITION_HOLDERS_KNOWN, "True", "Known", "kubelet tells who holds what")


def _condition(kind: str, status: Truth, reason: str, message: str) -> ConditionReport:
    return ConditionReport(type=kind, status=status, reason=reason, message=message)
