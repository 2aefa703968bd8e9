"""What happens to a pod: the whole decision, pure. Called again for the same pod it finds nothing more to do."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from cta_group_core.align_mode import AlignMode
from cta_group_core.annotations import unreadable
from cta_group_core.cluster_shape import shape_problem
from cta_group_core.names import (
    ANNOTATION_ALIGN,
    ANNOTATION_ALIGNMENT,
    ANNOTATION_ALIGNMENT_ADVICE,
    ANNOTATION_PLACEMENT,
    ANNOTATION_RUNTIME_ADVICE,
    ANNOTATION_SHAPE,
    ANNOTATION_WITHOUT_WEBHOOK,
    GATE_PLACEMENT,
    LABEL_REQUESTS,
)
from cta_group_core.refusals import does_not_honour_gates
from cta_group_core.vllm.claims import claims_of, holds
from cta_group_core.vllm.findings import misleading_variables
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.vllm.judge import parallel_problem
from cta_group_core.vllm.words import ADDITIONAL_ARGS
from cta_group_operator.admission.alignment import (
    Advice,
    Server,
    advise,
    case_of,
    facts_of,
    find_server,
    judged,
    mode_of,
)
from cta_group_operator.admission.gpu_kinds import SliceFacts
from cta_group_operator.admission.patch import PodPatch
from cta_group_operator.admission.pod import Pod
from cta_group_operator.admission.requests import Asked, apply_annotation, asked_by, asks, every_request
from cta_group_operator.admission.review import Answer
from cta_group_operator.admission.settings import PodRules

_WRITTEN_LATER: Final = (ANNOTATION_PLACEMENT, ANNOTATION_WITHOUT_WEBHOOK)
"""Annotations of the operator that no pod can have at its creation: whoever claims them loses them."""
_WAY_OUT: Final = f' (the annotation {ANNOTATION_ALIGN}: "report" lets the pod in as it is)'


@dataclass(frozen=True, slots=True)
class Mutation:
    """The answer for a pod, and the flags that were changed in it."""

    answer: Answer
    changed_flags: tuple[str, ...] = ()


Pauses = Callable[[str], str]
"""For the uid of a controller, why its next pod has to wait; empty when it has not."""


def mutate(pod: Pod, rules: PodRules, facts: SliceFacts, pauses: Pauses = lambda _: "") -> Mutation:
    """Label and gate a pod that asks for groups, and fit it to its slice and runtime. Other pods stay as they are.

    A pod that cannot be held back by a gate is refused while its like must wait: its controller tries again by itself.
    """
    patch = PodPatch(pod)
    warnings = apply_annotation(pod, rules.resource_name, patch)
    if not asks(pod, rules.resource_name):
        return Mutation(Answer(warnings=warnings))
    patch.label(LABEL_REQUESTS, "true")
    for name in _WRITTEN_LATER:
        patch.annotate(name, None)
    scheduler = pod.spec.scheduler_name or ""
    if scheduler in rules.gateless_schedulers:
        if words := pauses(pod.controller_uid):
            return Mutation(Answer(allowed=False, message=f"{does_not_honour_gates(scheduler)}, so not yet: {words}"))
    elif rules.placement and not pod.spec.node_name:
        # A pod that is bound already cannot have a gate: the API server refuses it.
        patch.gate(GATE_PLACEMENT)
    advice = _align(pod, rules, facts.kinds(pod.spec), patch)
    misleading = _misleading(asked_by(pod, rules.resource_name))
    warnings += [*_ignored(pod), *_runtime(pod, rules, patch), *misleading, *advice.warnings]
    return Mutation(Answer(patch=patch.operations, warnings=warnings), tuple(edit.flag for edit in advice.edits))


def _ignored(pod: Pod) -> list[str]:
    """Say which annotations nobody can read. A pod with a wrong shape is refused for it."""
    return [f"ignored: {wrong}" for name, wrong in unreadable(pod.annotations).items() if name != ANNOTATION_SHAPE]


def _runtime(pod: Pod, rules: PodRules, patch: PodPatch) -> list[str]:
    """See to it that a pod does not run without its GPU unnoticed. A class that it names is never overwritten."""
    needed = rules.runtime_class
    if not needed or pod.spec.runtime_class_name or rules.sets_runtime_class:
        patch.annotate(ANNOTATION_RUNTIME_ADVICE, None)
    if not needed or pod.spec.runtime_class_name:
        return []
    if rules.sets_runtime_class:
        patch.runtime_class(needed)
        return [f"set runtimeClassName: {needed} (was not given)"]
    told = (
        f"set runtimeClassName: {needed} in the pod template; the device list envvar needs the NVIDIA runtime, which "
        "is not the nodes' default one, and without it the pod gets the environment of a slice and no GPU"
    )
    patch.annotate(ANNOTATION_RUNTIME_ADVICE, told)
    return [told]


def _align(pod: Pod, rules: PodRules, kinds: Collection[GpuKind], patch: PodPatch) -> Advice:
    mode = mode_of(pod, rules.alignment)
    server, unclear = find_server(pod, asked_by(pod, rules.resource_name))
    advice, wrong = Advice(), None
    if server is not None:
        judgement = judged(server, pod, kinds)
        advice, wrong = advise(judgement, kinds, mode), parallel_problem(case_of(server, pod, kinds))
    if server is not None and advice.aligned is not None:
        _write_arguments(server, advice, patch)
    _write_annotations(pod, server, advice, patch)
    told = (*unclear, *([wrong] if wrong else ()), *advice.warnings)
    return Advice(advice.aligned, advice.edits, advice.by_hand, told)


def _write_arguments(server: Server, advice: Advice, patch: PodPatch) -> None:
    before, after = server.detected.container, advice.aligned
    if after is None:
        return
    patch.words(server.asked.index, "command", before.command, after.command)
    patch.words(server.asked.index, "args", before.args, after.args)
    if after.variable:
        patch.add_to_variable(server.asked.index, ADDITIONAL_ARGS, after.variable)


def _write_annotations(pod: Pod, server: Server | None, advice: Advice, patch: PodPatch) -> None:
    """Say what was changed; what a user claims there is taken away, what an earlier call of ours said stays."""
    if advice.edits:
        text = msgspec.json.encode([edit.as_json() for edit in advice.edits]).decode()
        patch.annotate(ANNOTATION_ALIGNMENT, text)
    elif server is None or not holds(claims_of(pod.annotations.get(ANNOTATION_ALIGNMENT, "")), server.arguments):
        patch.annotate(ANNOTATION_ALIGNMENT, None)
    patch.annotate(ANNOTATION_ALIGNMENT_ADVICE, advice.by_hand or None)


def _misleading(asked: Sequence[Asked]) -> list[str]:
    return [warning for one in asked for warning in misleading_variables(facts_of(one.container))]


def validate(pod: Pod, rules: PodRules, facts: SliceFacts) -> Answer:
    """Refuse a pod whose shape or whose vLLM can never go with what it asks for; the sentence says what to ask for.

    Who wants no alignment, or only its report, is not refused because of vLLM: that is the way out where it is misread.
    """
    requests = every_request(pod, rules.resource_name)
    if unshaped := shape_problem(pod.annotations.get(ANNOTATION_SHAPE), requests):
        return Answer(allowed=False, message=unshaped)
    server, _ = find_server(pod, asked_by(pod, rules.resource_name))
    if server is None or mode_of(pod, rules.alignment) is not AlignMode.ON:
        return Answer()
    wrong = parallel_problem(case_of(server, pod, facts.kinds(pod.spec)))
    return Answer() if wrong is None else Answer(allowed=False, message=f"{wrong}{_WAY_OUT}")
