"""``kubectl cta explain``: why a workload does not run, from its CTAWorkload or from the objects themselves."""

import json
from collections.abc import Sequence
from dataclasses import replace

from cta_group_cli.allowed import AllowedReader
from cta_group_cli.answer import Answer
from cta_group_cli.errors import NotFound
from cta_group_cli.exits import Exit
from cta_group_cli.kinds import POD, Reference, kind_of
from cta_group_cli.objects import Controller, Pod
from cta_group_cli.observed import groups_of, is_gated, is_stuck, pod_facts, pods_of, workload_facts
from cta_group_cli.pod_words import admission_remarks, pod_conditions, pod_remarks
from cta_group_cli.ports import ClusterReader, Part, Quota, resource_of
from cta_group_cli.quota import covers, room_words
from cta_group_cli.terminal import say
from cta_group_cli.workload_words import budget_words, is_in_the_way, warnings_of
from cta_group_core.explain import WorkloadFacts, explain
from cta_group_core.names import GATE_PLACEMENT
from cta_group_core.workload import WorkloadStatus, object_name

_BY_OPERATOR = "the operator"
_BY_OBJECTS = "the objects themselves"
_NO_OPERATOR = "The operator has written nothing about it (is it running?); this is what the objects themselves say."
_NOT_ALLOWED = "You may not read what the operator wrote about it; this is what the objects themselves say."
_NOT_FOLLOWED = "What the operator wrote is old (is it running?); this is what the objects themselves say."
_DEEPEST_CHAIN = 8


def show_explanation(reader: ClusterReader, text: str, *, namespace: str | None, as_json: bool) -> Exit:
    """Print the answer for ``KIND/NAME``; BadInput or NotFound when there is nothing to answer about."""
    allowed = AllowedReader(reader)
    reference = Reference.parse(text, namespace or reader.namespace)
    try:
        answer = answer_for(allowed, reference)
    except NotFound as absent:
        if refusal := allowed.refusal_of(reference.kind):
            raise refusal from absent
        raise
    if allowed.not_read:
        answer = replace(answer, remarks=(*answer.remarks, allowed.not_read))
    say(json.dumps(answer.as_json()) if as_json else answer.as_text())
    return Exit.FINDINGS if answer.blocked else Exit.FINE


def answer_for(reader: AllowedReader, reference: Reference) -> Answer:
    """Return why the object does not run. The object itself is asked first for, then those that own it."""
    pod = reader.pod(reference.namespace, reference.name) if reference.kind is POD else None
    made_by = None if pod else reader.controller(reference.kind, reference.namespace, reference.name)
    chain = _chain(reader, reference, pod or made_by)
    told = _told(reader, chain)
    if told and made_by and told[0] == reference and _is_old(told[1], made_by):
        return _of_controller(reader, reference, made_by, why=_NOT_FOLLOWED)
    if told and (pod is None or told[0] == reference):
        return _by_operator(reader, reference, *told, pods=_pods(reader, pod, made_by))
    if pod:
        return _of_pod(reader, reference, pod, told)
    if made_by:
        return _of_controller(reader, reference, made_by, why=_why_silent(reader))
    raise NotFound(
        f"{reference} is not in namespace {reference.namespace}, and no CTAWorkload tells of it (-n: another)"
        f"{_about_refused_pods(reader, reference)}"
    )


def _why_silent(reader: AllowedReader) -> str:
    return _NO_OPERATOR if reader.reads_explanations else _NOT_ALLOWED


def _about_refused_pods(reader: ClusterReader, reference: Reference) -> str:
    """Say what can be known of a pod that never came to be: nothing of it, only of what may have refused it."""
    if reference.kind is not POD:
        return ""
    space = reference.namespace
    left = (f"CTAQuota {room_words(one, space)}" for one in _quotas(reader, space))
    told = ("a pod that nobody controls leaves nothing when it is refused: its creator got the reason", *left)
    return f"; {'; '.join(told)}"


def _chain(reader: ClusterReader, reference: Reference, found: Pod | Controller | None) -> Sequence[Reference]:
    """Return the object and its owners, the nearest first."""
    chain = [reference]
    while found and (owner := found.metadata.controller) and len(chain) < _DEEPEST_CHAIN:
        chain.append(Reference(kind_of(owner.kind, owner.api_version), reference.namespace, owner.name))
        found = reader.controller(chain[-1].kind, reference.namespace, owner.name)
    return chain


def _told(reader: ClusterReader, chain: Sequence[Reference]) -> tuple[Reference, WorkloadStatus] | None:
    """Return what the operator says about the topmost object of the chain that it knows."""
    for reference in reversed(chain):
        if status := reader.workload(reference.namespace, object_name(reference.kind.name, reference.name)):
            return reference, status
    return None


def _is_old(status: WorkloadStatus, made_by: Controller) -> bool:
    """Tell whether the operator wrote before somebody scaled the workload."""
    replicas = made_by.spec.replicas if made_by.spec.template else None
    return replicas is not None and replicas != status.replicas_wanted


def _pods(reader: ClusterReader, pod: Pod | None, made_by: Controller | None) -> Sequence[Pod]:
    if pod:
        return [pod]
    return pods_of(reader, made_by) if made_by else ()


def _by_operator(
    reader: ClusterReader, reference: Reference, about: Reference, status: WorkloadStatus, *, pods: Sequence[Pod]
) -> Answer:
    stuck = any(is_stuck(pod_facts(pod)) for pod in pods)
    belongs = () if about == reference else (f"It belongs to {about}.",)
    return Answer(
        reference=reference,
        message=status.message,
        blocked=stuck or any(is_in_the_way(condition) for condition in status.conditions),
        source=_BY_OPERATOR,
        groups_per_pod=status.groups_per_pod,
        wanted=status.replicas_wanted,
        running=status.replicas_running,
        conditions=status.conditions,
        quotas=_quotas(reader, reference.namespace),
        remarks=(*belongs, *warnings_of(status.conditions), *_about_admission(pods), *budget_words(status)),
        told=status,
    )


def _about_admission(pods: Sequence[Pod]) -> Sequence[str]:
    """Return what admission did to the pods, once however many of them it is so for."""
    return tuple(dict.fromkeys(remark for pod in pods for remark in admission_remarks(pod)))


def _of_controller(reader: ClusterReader, reference: Reference, made_by: Controller, *, why: str) -> Answer:
    resource = _resource_name(reader, reference.namespace)
    template = made_by.spec.pod_template
    if template is None:
        raise NotFound(f"no CTAWorkload tells of {reference}, and what its pods ask for cannot be read here")
    facts = workload_facts(reader, made_by, template, resource)
    if not facts.groups_per_pod:
        return _asks_for_none(reference, resource)
    return _observed(reader, reference, facts, remarks=(why, *_about_admission(pods_of(reader, made_by))))


def _of_pod(
    reader: AllowedReader, reference: Reference, pod: Pod, told: tuple[Reference, WorkloadStatus] | None
) -> Answer:
    resource = _resource_name(reader, reference.namespace)
    groups = groups_of(pod.spec, resource)
    remarks = [*pod_remarks(pod), f"Its workload, {told[0]}: {told[1].message}" if told else _why_silent(reader)]
    if not groups:
        return _asks_for_none(reference, resource, gated=is_gated(pod))
    answer = _observed(reader, reference, WorkloadFacts(1, groups, [pod_facts(pod)]), remarks=remarks)
    return replace(answer, conditions=[*answer.conditions, *pod_conditions(pod)])


def _observed(reader: ClusterReader, reference: Reference, facts: WorkloadFacts, *, remarks: Sequence[str]) -> Answer:
    """Answer by the operator's own rule, from facts read here."""
    explanation = explain(facts)
    stuck = any(is_stuck(pod) for pod in facts.pods)
    return Answer(
        reference=reference,
        message=explanation.message,
        blocked=stuck or any(is_in_the_way(condition) for condition in explanation.conditions),
        source=_BY_OBJECTS,
        groups_per_pod=facts.groups_per_pod,
        wanted=facts.wanted,
        running=facts.running,
        conditions=explanation.conditions,
        quotas=_quotas(reader, reference.namespace),
        remarks=remarks,
    )


def _asks_for_none(reference: Reference, resource: str, *, gated: bool = False) -> Answer:
    message = f"asks for no {resource}, so nothing of this project holds it back"
    if gated:
        message = (
            f"asks for no {resource} but has the scheduling gate {GATE_PLACEMENT}, which is only taken off pods that "
            "ask for groups; make it again without that gate"
        )
    return Answer(reference, message, blocked=gated, source=_BY_OBJECTS)


def _resource_name(reader: ClusterReader, namespace: str) -> str:
    """Return the resource that the nodes offer, or else that the namespace's limit names."""
    part = reader.part(namespace)
    return resource_of(reader.nodes()) if part is None else resource_of(reader.nodes(), part.resource)


def _quotas(reader: ClusterReader, namespace: str) -> Sequence[Quota | Part]:
    """Return those that a namespace has a part of; its part alone for whoever may not read CTAQuotas."""
    found = [quota for quota in reader.quotas() if isinstance(quota, Quota) and covers(quota, namespace)]
    part = None if found else reader.part(namespace)
    return found if part is None else [part]
