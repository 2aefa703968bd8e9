"""What admission and its policies would say to each workload of a manifest, as facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cta_group_cli.annotation_rules import annotation_warnings
from cta_group_cli.budget_rules import budget_warnings
from cta_group_cli.manifest_pods import ManifestContainer, containers_of
from cta_group_cli.manifests import Manifests, PodTemplate, name_of, namespace_of
from cta_group_core.annotated_groups import annotated_container, annotated_groups
from cta_group_core.cluster_shape import degradation, needs_clusters, shape_problem
from cta_group_core.errors import InvalidText
from cta_group_core.names import (
    ANNOTATION_ALIGN,
    ANNOTATION_CONTAINER,
    ANNOTATION_GROUPS,
    ANNOTATION_SHAPE,
    DEFAULT_RESOURCE_NAME,
    WHOLE_GPU_RESOURCE,
)
from cta_group_core.request_rules import Role, refused_requests
from cta_group_core.vllm.detect import Detected, detect
from cta_group_core.vllm.findings import misleading_variables, protected_variables
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.vllm.judge import Case, Judgement, judge
from cta_group_core.vllm.reading import Value, reading_of
from cta_group_core.vllm.words import Form

_ENGINE = "vllm"


@dataclass(slots=True)
class WorkloadAnswer:
    """One workload: what was found, and what would be done."""

    kind: str
    namespace: str
    name: str
    container: str | None = None
    engine: str | None = None
    version: str | None = None
    argv_form: str | None = None
    groups: int | None = None
    read: dict[str, Value] = field(default_factory=dict)
    edits: list[dict[str, str | None]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    describes_pods: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return the public form."""
        return {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "container": self.container,
            "engine": self.engine,
            "version": self.version,
            "argvForm": self.argv_form,
            "groups": self.groups,
            "read": self.read,
            "edits": self.edits,
            "refused": self.refused,
            "warnings": self.warnings,
        }


def answers(
    manifests: Manifests, kind: GpuKind, capability: str = "", *, resource: str = DEFAULT_RESOURCE_NAME
) -> list[WorkloadAnswer]:
    """Return the answer for each pod that the manifests describe, on one kind of GPU.

    ``capability``: its compute capability, such as ``9.0``; empty where it is not known. ``resource``: what pods ask
    for, as the chart's ``resourceName``.
    """
    found = []
    for template in manifests.templates():
        answer = _answer(template, manifests, kind, resource)
        wants = answer.groups and needs_clusters(template.annotations.get(ANNOTATION_SHAPE, ""))
        if wants and (words := degradation(kind.product, capability)):
            answer.warnings.append(words)
        answer.warnings += annotation_warnings(template, answer.refused)
        found.append(answer)
    mistaken = list(manifests.mistaken())
    unseen = [one for one in manifests.unseen(resource) if not any(one is other for other, _ in mistaken)]
    return [*found, *(_mistaken(one, wrong) for one, wrong in mistaken), *map(_unseen, unseen)]


def _unseen(one: Mapping[str, Any]) -> WorkloadAnswer:
    told = "it asks for groups, and its controller makes the pods: look at one of those (kubectl get pod -o yaml)"
    return WorkloadAnswer(str(one["kind"]), namespace_of(one), name_of(one), warnings=[told], describes_pods=False)


def _mistaken(one: Mapping[str, Any], wrong: str) -> WorkloadAnswer:
    return WorkloadAnswer(str(one["kind"]), namespace_of(one), name_of(one), refused=[wrong])


def _answer(template: PodTemplate, manifests: Manifests, kind: GpuKind, resource: str) -> WorkloadAnswer:
    answer = WorkloadAnswer(template.kind, template.namespace, template.name, refused=[*template.mistakes])
    containers = containers_of(template, manifests)
    answer.warnings += budget_warnings(template, containers)
    asked = _asked(template, containers, answer, resource)
    answer.refused += _refused_requests(template, manifests, containers, asked, resource)
    detection = detect(
        [one.facts for one in containers],
        template.labels,
        named=template.annotations.get(ANNOTATION_CONTAINER),
        asking={containers[index].facts.name for index in asked},
    )
    for index in asked:
        answer.refused += _mistakes_of(containers[index])
        answer.refused += protected_variables(containers[index].facts)
        answer.warnings += misleading_variables(containers[index].facts)
    answer.groups = sum(asked.values()) or None
    initial = (one.asks(resource) for one in containers_of(template, manifests, "initContainers"))
    requests = [groups for groups in (*asked.values(), *initial) if groups]
    if unshaped := shape_problem(template.annotations.get(ANNOTATION_SHAPE), requests):
        answer.refused.append(unshaped)
    for groups in asked.values():
        if not kind.takes(groups):
            answer.refused.append(f"{groups} groups are not allowed on {kind.product}: {kind.units.allowed()}")
    if detection.found is None:
        answer.warnings += [detection.reason] if detection.reason else []
        return answer
    index = next(at for at, one in enumerate(containers) if one.facts is detection.found.container)
    _describe(detection.found, answer)
    if index not in asked:
        answer.refused += _mistakes_of(containers[index])
    if index in asked:
        answer.groups = asked[index]
        case = _case(template, manifests, containers[index], detection.found, answer)
        _fit(replace(case, kinds=[kind]), template, answer)
    elif detection.found.arguments.form is not Form.UNKNOWN:
        answer.warnings.append(_without_groups(containers[index], resource))
    return answer


def _mistakes_of(container: ManifestContainer) -> list[str]:
    return [f"container {container.facts.name}: {mistake}" for mistake in container.mistakes]


def _describe(found: Detected, answer: WorkloadAnswer) -> None:
    answer.container, answer.engine, answer.version = found.container.name, _ENGINE, found.version
    answer.argv_form = str(found.arguments.form)
    answer.read = reading_of(found.arguments)


def _without_groups(container: ManifestContainer, resource: str) -> str:
    name = container.facts.name
    whole = container.limits.get(WHOLE_GPU_RESOURCE) or container.requests.get(WHOLE_GPU_RESOURCE)
    if whole is not None and container.asks(WHOLE_GPU_RESOURCE) == 0:
        return (
            f"container {name} asks for {whole} of {WHOLE_GPU_RESOURCE}, "
            f"which is counted in whole GPUs: ask for {resource}"
        )
    return f"container {name} looks like vLLM and asks for no groups; its arguments were not fitted"


def _asked(
    template: PodTemplate, containers: Sequence[ManifestContainer], answer: WorkloadAnswer, resource: str
) -> dict[int, int]:
    """Return the groups that containers ask for, by their index; the annotation counts as admission would take it."""
    found = {index: one.asks(resource) for index, one in enumerate(containers) if one.asks(resource)}
    text = template.annotations.get(ANNOTATION_GROUPS)
    if found or text is None:
        return found
    names = [one.facts.name for one in containers]
    with_gpus = [index for index, one in enumerate(containers) if one.asks(WHOLE_GPU_RESOURCE)]
    try:
        groups = annotated_groups(text)
    except InvalidText as wrong:  # the policy about sizes refuses it
        answer.refused.append(str(wrong))
        return {}
    try:
        return {annotated_container(names, template.annotations.get(ANNOTATION_CONTAINER), with_gpus): groups}
    except InvalidText as wrong:
        answer.warnings.append(str(wrong))
        return {}


def _refused_requests(
    template: PodTemplate,
    manifests: Manifests,
    containers: Sequence[ManifestContainer],
    asked: Mapping[int, int],
    resource: str,
) -> list[str]:
    """Return what the API server and the policies of the chart refuse."""
    given = [containers[index].facts.name for index in asked if not containers[index].asks(resource)]
    initial = [
        one.asking(Role.SIDECAR if one.is_sidecar else Role.INITIAL)
        for one in containers_of(template, manifests, "initContainers")
    ]
    everyone = [*(one.asking(Role.REGULAR) for one in containers), *initial]
    annotated = given[0] if given else None
    return refused_requests(everyone, template.annotations, resource, annotated=annotated)


def _case(
    template: PodTemplate, manifests: Manifests, container: ManifestContainer, found: Detected, answer: WorkloadAnswer
) -> Case:
    return Case(
        found,
        answer.groups or 0,
        (),
        labels=template.labels,
        probes=container.probes,
        services=list(manifests.of_kind("Service", template.namespace)),
        service_links=template.spec.get("enableServiceLinks") is not False,
    )


def _fit(case: Case, template: PodTemplate, answer: WorkloadAnswer) -> None:
    judgement = judge(case)
    answer.refused += [one for one in judgement.refused if one not in answer.refused]
    small = judgement.alignment is None
    answer.refused += judgement.too_small if small else ()
    answer.warnings += [one for one in judgement.warnings if not (small and one in judgement.too_small)]
    _tell_edits(judgement, template.annotations.get(ANNOTATION_ALIGN), answer)


def _tell_edits(judgement: Judgement, mode: str | None, answer: WorkloadAnswer) -> None:
    aligned = judgement.alignment
    if aligned is None or not aligned.edits:
        return
    if aligned.not_patchable:
        answer.warnings.insert(0, f"not changed: {aligned.not_patchable}")
    elif mode in {"off", "report"}:
        wanted = " ".join(f"{edit.flag}={edit.after}" for edit in aligned.edits)
        answer.warnings.insert(0, f"not changed, because {ANNOTATION_ALIGN} is {mode}: {wanted} would be set")
    else:
        answer.edits = [edit.as_json() for edit in aligned.edits]
