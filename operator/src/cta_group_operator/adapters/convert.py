"""From wire structs to the values of ``ports``: pods and events. None: the object is not ours to look at."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from cta_group_core.access_pattern import parse_pattern
from cta_group_core.cluster_shape import needs_clusters
from cta_group_core.endings import ContainerFacts, words_of_ending, words_of_last_ending
from cta_group_core.errors import InvalidText
from cta_group_core.ids import NodeName
from cta_group_core.names import (
    ANNOTATION_ACCESS_PATTERN,
    ANNOTATION_ALIGNMENT,
    ANNOTATION_ALIGNMENT_ADVICE,
    ANNOTATION_PLACEMENT,
    ANNOTATION_SHAPE,
    ANNOTATION_WITHOUT_WEBHOOK,
    DEFAULT_SCHEDULER,
)
from cta_group_core.quantities import parse_count
from cta_group_core.refusals import Cause, cause_of
from cta_group_core.scheduling import NodeTerm, PodTerms, Toleration
from cta_group_core.selectors import Operator, Requirement
from cta_group_core.vllm.claims import believed
from cta_group_operator.adapters import wire, wire_cluster
from cta_group_operator.adapters.convert_budget import budget_of, facts_of
from cta_group_operator.adapters.convert_load import load_of
from cta_group_operator.ports import AffinityShape, FailureEvent, Json, ObjectRef, PodView
from cta_group_operator.resources import EVENTS, PODS, Resource, is_followed

_QUIET_REASONS: Final = ("ContainerCreating", "PodInitializing")


class Converter:
    """Converts objects that ask for one resource."""

    def __init__(self, resource_name: str) -> None:
        self._resource_name = resource_name

    def read_pod(self, body: Json) -> PodView | None:
        """As :meth:`pod`, from the API server's JSON; raises msgspec's ValidationError, a ValueError."""
        return self.pod(msgspec.json.decode(msgspec.json.encode(body), type=wire.Pod))  # only text becomes Raw

    def pod(self, pod: wire.Pod) -> PodView | None:
        """Return a pod that asks for groups."""
        spec, status = pod.spec or wire.PodSpec(), pod.status or wire.PodStatus()
        requests = self.requests(spec)
        if not requests:
            return None
        meta = pod.metadata
        return PodView(
            ref=ref_of(PODS, meta),
            resource_version=meta.resource_version,
            requests=requests,
            owner=owner_of(meta),
            created=meta.creation_timestamp or "",
            priority=spec.priority or 0,
            evicts=spec.preemption_policy != "Never",
            phase=status.phase or "Pending",
            deleting=meta.deletion_timestamp is not None,
            ends=meta.deletion_timestamp or "",
            node=NodeName(spec.node_name) if spec.node_name else None,
            gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
            terms=_terms(spec, meta.annotations or {}),
            shape=_shape(meta, spec),
            words=_words(status),
            scheduler=spec.scheduler_name or DEFAULT_SCHEDULER,
            refused=self._refused(spec, status),
            slipped=ANNOTATION_WITHOUT_WEBHOOK in (meta.annotations or {}),
            address=status.pod_ip or "",
            budget=None if is_followed(owner_of(meta)) else budget_of(meta, meta, spec),
            **_admission_words(meta, spec),
            unschedulable=_unschedulable(status) is not None and not status.nominated_node_name,
            placed_on=(meta.annotations or {}).get(ANNOTATION_PLACEMENT, ""),
        )

    def _refused(self, spec: wire.PodSpec, status: wire.PodStatus) -> Cause | None:
        """Return why a kubelet did not give the pod its groups, None for one that it took, or that failed otherwise."""
        if status.phase != "Failed":
            return None
        others = _extended_resources(spec) - {self._resource_name}
        return cause_of(status.reason or "", status.message or "", self._resource_name, others)

    def requests(self, spec: wire.PodSpec) -> tuple[int, ...]:
        """Return the groups of each container that asks, sidecars too.

        Other init containers may not ask. Where a policy lets one all the same, the containers after it get what it
        had: if they ask for no more together it is what counts, on one GPU, and it is what Kubernetes charges.
        """
        before = spec.init_containers or ()
        sidecars = [self._groups_of(one) for one in before if one.restart_policy == "Always"]
        first = max((self._groups_of(one) for one in before if one.restart_policy != "Always"), default=0)
        running = [self._groups_of(one) for one in spec.containers or ()]
        if first >= sum(running):
            running = [first]
        return tuple(groups for groups in (*sidecars, *running) if groups)

    def _groups_of(self, container: wire.Container) -> int:
        resources = container.resources or wire.Requirements()
        text = (resources.requests or {}).get(self._resource_name) or (resources.limits or {}).get(self._resource_name)
        try:
            return parse_count(text) if text else 0
        except InvalidText:
            return 0


def _extended_resources(spec: wire.PodSpec) -> set[str]:
    """Return the resources of device plugins that a pod asks for: all names with a domain outside Kubernetes' own."""
    asked = [
        (one.resources or wire.Requirements()) for one in (*(spec.init_containers or ()), *(spec.containers or ()))
    ]
    names = {name for one in asked for name in (one.limits or one.requests or {})}
    return {name for name in names if "/" in name and not name.partition("/")[0].endswith("kubernetes.io")}


def failure_event(event: wire_cluster.Event) -> FailureEvent | None:
    """Return an event about a pod that could not be created."""
    about = event.involved_object.uid if event.involved_object else None
    if not about:
        return None
    last = event.last_timestamp or event.event_time or event.metadata.creation_timestamp or ""
    ref = ref_of(EVENTS, event.metadata)
    return FailureEvent(ref, event.metadata.resource_version, about, event.message or "", last)


def ref_of(resource: Resource, meta: wire.Metadata) -> ObjectRef:
    """Return which object it is."""
    return ObjectRef(resource.group_version, resource.kind, meta.namespace, meta.name, meta.uid)


def owner_of(meta: wire.Metadata) -> ObjectRef | None:
    """Return its controller; None where nobody makes it again."""
    for owner in meta.owner_references or ():
        if owner.controller:
            return ObjectRef(owner.api_version, owner.kind, meta.namespace, owner.name, owner.uid)
    return None


def _admission_words(meta: wire.Metadata, spec: wire.PodSpec) -> dict[str, str]:
    """Return what admission wrote on a pod; nothing where its template tells the same for all pods at once.

    Changes that the pod's arguments do not have were written by somebody else.
    """
    if not meta.annotations or is_followed(owner_of(meta)):
        return {}
    alignment = meta.annotations.get(ANNOTATION_ALIGNMENT, "")
    advice = meta.annotations.get(ANNOTATION_ALIGNMENT_ADVICE, "")
    is_so = bool(alignment) and bool(believed(alignment, facts_of(spec)))
    return {"alignment": alignment if is_so else "", "advice": advice}


def _terms(spec: wire.PodSpec, annotations: Mapping[str, str]) -> PodTerms:
    required = _required(spec)
    return PodTerms(
        node_selector=tuple(sorted((spec.node_selector or {}).items())),
        node_terms=None if required is None else tuple(_term(term) for term in required),
        tolerations=tuple(
            Toleration(one.key or "", one.operator or "Equal", one.value or "", one.effect or "")
            for one in spec.tolerations or ()
        ),
        cpu_milli=load_of(spec, "cpu", 1000),
        memory_bytes=load_of(spec, "memory"),
        pattern=parse_pattern(annotations.get(ANNOTATION_ACCESS_PATTERN, "")),
        needs_clusters=needs_clusters(annotations.get(ANNOTATION_SHAPE, "")),
    )


def _required(spec: wire.PodSpec) -> list[wire.NodeTerm] | None:
    node = spec.affinity.node_affinity if spec.affinity else None
    return (node.required.node_selector_terms or []) if node and node.required else None


def _term(term: wire.NodeTerm) -> NodeTerm:
    return NodeTerm(_requirements(term.match_expressions), _requirements(term.match_fields))


def _requirements(found: Iterable[wire.NodeRequirement] | None) -> tuple[Requirement, ...]:
    return tuple(_requirement(one.key, one.operator, tuple(one.values or ())) for one in found or ())


@lru_cache(maxsize=4096)  # names of nodes, mostly, and each pod that is released to them is told several times
def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    return Requirement(key=key, operator=Operator(operator), values=values)


def _shape(meta: wire.Metadata, spec: wire.PodSpec) -> AffinityShape:
    node = spec.affinity.node_affinity if spec.affinity else None
    return AffinityShape(
        has_annotations=bool(meta.annotations),
        has_affinity=spec.affinity is not None,
        has_node_affinity=node is not None,
        has_preferred=bool(node and node.preferred),
        term_fields=tuple(map(_has_fields, _required(spec) or ())),
    )


def _has_fields(term: wire.NodeTerm) -> bool | None:
    return bool(term.match_fields) if term.match_fields or term.match_expressions else None


def _last_words(status: wire.PodStatus) -> str:
    ended = map(_container_facts, status.container_statuses or ())
    return next((words_of_last_ending(one.name, one.exit_code) for one in ended if one.exit_code), "")


def _words(status: wire.PodStatus) -> str:
    """Return what is said about a pod that does not serve: by kubelet, about a container, by the scheduler."""
    if status.phase == "Failed":
        return _join(status.reason, status.message) or _last_words(status)
    containers = status.container_statuses or []
    if status.phase != "Running":
        containers = [*(status.init_container_statuses or ()), *containers]
    if endings := next(filter(None, (words_of_ending(_container_facts(one)) for one in containers)), ""):
        return endings
    if status.phase == "Running":
        return ""
    for container in containers:
        waiting = container.state.waiting if container.state else None
        if waiting and waiting.reason not in _QUIET_REASONS:
            return _join(waiting.reason, waiting.message)
    unschedulable = _unschedulable(status)
    return (unschedulable.message or "") if unschedulable else ""


def _unschedulable(status: wire.PodStatus) -> wire.Condition | None:
    """Return the condition by which the scheduler says that it finds no node."""
    told = ("PodScheduled", "False", "Unschedulable")
    return next((one for one in status.conditions or () if (one.type, one.status, one.reason) == told), None)


def _container_facts(status: wire.ContainerStatus) -> ContainerFacts:
    state, last = status.state or wire.ContainerState(), status.last_state or wire.ContainerState()
    return ContainerFacts(
        name=status.name,
        ready=bool(status.ready),
        waiting=(state.waiting and state.waiting.reason) or "",
        exit_code=state.terminated.exit_code if state.terminated else None,
        last_exit_code=last.terminated.exit_code if last.terminated else None,
    )


def _join(reason: str | None, message: str | None) -> str:
    return ": ".join(part for part in (reason, message) if part)
