"""A vLLM server as its CTAWorkload shows it: what was found, its memory in the slice, and whether its arguments fit."""

import json
from collections.abc import Sequence

from cta_group_core.errors import SliceTooSmall
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.vllm.align import Alignment, Edit
from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.judge import Case, judge, model_size_of
from cta_group_core.vllm.memory import SliceMemory, context_mib, largest_utilization, reserve_mib
from cta_group_core.vllm.plan import Server, cache_room_mib
from cta_group_core.workload import CONDITION_ARGS_ALIGNED, MemoryPlan, ServerStatus

ENGINE = "vLLM"
_LONGEST_ARGUMENT = 200
_MOST_ARGUMENTS = 32
_MOST_PLANS = 8


def server_status(case: Case) -> ServerStatus:
    """Return what is known of the server, its memory on each kind of GPU on which it can start."""
    arguments = case.detected.arguments
    return ServerStatus(
        engine=ENGINE,
        container=case.detected.container.name,
        version=case.detected.version,
        arguments_form=str(arguments.form),
        arguments=_written(arguments),
        memory=tuple(memory_plans(case)[:_MOST_PLANS]),
    )


def _written(arguments: Arguments) -> tuple[str, ...]:
    """Return the arguments that the project acts on; others may hold what nobody should read."""
    model = [f"{Flag.MODEL}={arguments.model}"] if arguments.model else []
    found = [one for one in arguments.occurrences if one.flag is not Flag.MODEL]
    told = [one.spelling if one.text is None else f"{one.flag}={one.text}" for one in found]
    return tuple(str(one)[:_LONGEST_ARGUMENT] for one in (*model, *told)[:_MOST_ARGUMENTS])


def memory_plans(case: Case) -> list[MemoryPlan]:
    """Return the plan for each product whose slice is large enough, in the order of names."""
    found: dict[str, MemoryPlan] = {}
    for kind in sorted(case.kinds, key=lambda kind: (kind.product, kind.memory_mib)):
        share = kind.share(case.groups) if kind.takes(case.groups) else None
        if share is not None and (plan := _plan(case, share)) is not None:
            found.setdefault(kind.product, plan)
    return list(found.values())


def _plan(case: Case, share: SliceMemory) -> MemoryPlan | None:
    server = Server(case.detected.arguments, [share], case.detected.version, model_size_of(case.detected))
    load = server.load(planned=True)
    try:
        utilization = largest_utilization(share, load)
    except SliceTooSmall:
        return None
    return MemoryPlan(
        product=share.product,
        slice_mib=share.limit_mib,
        context_mib=context_mib(share.groups),
        reserve_mib=reserve_mib(share, load),
        utilization=str(utilization),
        weights_mib=None if server.size is None else server.size.weights_mib,
        cache_mib=None if server.size is None else max(0, cache_room_mib(server, planned=True)),
    )


def args_condition(case: Case, *, mode: str) -> Condition:
    """Return ArgsAligned for the pods that the template makes. ``mode``: what admission does, on, report or off."""
    if not case.kinds:
        return _condition(ConditionStatus.UNKNOWN, "NoGpuKnown", "no GPU of this cluster is known yet")
    answer = judge(case)
    if answer.refused:
        return _condition(ConditionStatus.FALSE, "Refused", "; ".join(answer.refused))
    aligned = answer.alignment
    if aligned is None:
        if answer.too_small:
            return _condition(ConditionStatus.FALSE, "SliceTooSmall", "; ".join(answer.too_small))
        return _condition(ConditionStatus.TRUE, "WholeGpu", "whole GPUs have all their memory; nothing is changed")
    return _of_alignment(aligned, mode)


def _of_alignment(aligned: Alignment, mode: str) -> Condition:
    if not aligned.edits:
        return _condition(ConditionStatus.TRUE, "Fit", "they fit the slice as they are")
    wanted = _wanted(aligned.edits)
    if mode != "on":
        told = f"alignment is {mode}; they would be changed to: {wanted}"
        return _condition(ConditionStatus.FALSE, "AlignmentOff" if mode == "off" else "ReportedOnly", told)
    if aligned.not_patchable:
        return _condition(ConditionStatus.FALSE, "ArgsNotPatchable", aligned.not_patchable)
    return _condition(ConditionStatus.TRUE, "Changed", f"set when a pod is admitted: {wanted}")


def condition_of_annotations(alignment: str, advice: str) -> Condition | None:
    """Return ArgsAligned of a pod that no known template made, from what admission wrote on it; None: nothing.

    ``alignment`` is JSON of :meth:`Edit.as_json`, ``advice`` a sentence.
    """
    if advice:
        return _condition(ConditionStatus.FALSE, "ArgsNotPatchable", advice)
    try:
        wanted = " ".join(f"{one['flag']}={one['to']}" for one in json.loads(alignment or "[]"))
    except (ValueError, TypeError, KeyError):
        return None  # not one of ours
    if not wanted:
        return None
    return _condition(ConditionStatus.TRUE, "Changed", f"set when the pod was admitted: {wanted}")


def _wanted(edits: Sequence[Edit]) -> str:
    return " ".join(f"{edit.flag}={edit.after}" for edit in edits)


def _condition(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(type=CONDITION_ARGS_ALIGNED, status=status, reason=reason, message=message)
