"""What Kubernetes' own objects say about a workload, for when the operator has written nothing about it.

The sentence is then made by the very rule that the operator uses (:mod:`cta_group_core.explain`), from facts that are
read here once instead of being followed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cta_group_cli.objects import ContainerStatus, Controller, Pod, PodSpec, PodStatus, PodTemplate, Resources
from cta_group_cli.ports import ClusterReader
from cta_group_core.denials import parse_denial
from cta_group_core.ending_pods import EndingPod
from cta_group_core.endings import ContainerFacts, words_of_ending, words_of_last_ending
from cta_group_core.explain import CreateFailure, PodFacts, Stage, WorkloadFacts
from cta_group_core.jobs import JobFacts
from cta_group_core.names import GATE_PLACEMENT
from cta_group_core.request_rules import asked_count

_ENDED = {"Failed": Stage.FAILED, "Succeeded": Stage.DONE}
_STUCK = frozenset({Stage.NO_ROOM, Stage.WAITING, Stage.FAILED, Stage.UNSCHEDULED, Stage.CRASHING})
_ORDINARY_WAITS = frozenset({"ContainerCreating", "PodInitializing"})


def groups_of(spec: PodSpec, resource_name: str) -> int:
    """Return the groups that a pod asks for, as the scheduler counts them: init containers run before the others."""
    sidecars = most = 0
    for one in spec.init_containers:
        asked = _groups(one.resources, resource_name)
        most = max(most, sidecars + asked)
        sidecars += asked if one.restart_policy == "Always" else 0
    return max(most, sidecars + sum(_groups(one.resources, resource_name) for one in spec.containers))


def _groups(resources: Resources, resource_name: str) -> int:
    return asked_count(resources.limits, resources.requests, resource_name)


def pod_facts(pod: Pod) -> PodFacts:
    """Return how far a pod has come, and what Kubernetes says about it."""
    status = pod.status
    if status.phase in _ENDED:
        words = ": ".join(word for word in (status.reason, status.message) if word) or _last_words(status)
        return PodFacts(pod.metadata.name, _ENDED[status.phase], words)
    if status.phase == "Running":
        endings = next(filter(None, map(_ending_words, status.container_statuses)), "")
        return PodFacts(pod.metadata.name, Stage.CRASHING if endings else Stage.RUNNING, endings)
    scheduled = next((one for one in status.conditions if one.type == "PodScheduled"), None)
    if is_gated(pod):
        return PodFacts(pod.metadata.name, Stage.WAITING, f"held by its scheduling gate {GATE_PLACEMENT}")
    if not pod.spec.node_name:
        return PodFacts(pod.metadata.name, Stage.UNSCHEDULED, scheduled.message if scheduled else "")
    return PodFacts(pod.metadata.name, Stage.STARTING, waiting_words(pod))


def _last_words(status: PodStatus) -> str:
    """Return how the containers of a pod that is over ended; empty when all of them ended well."""
    codes = {one.name: one.state.terminated.exit_code for one in status.container_statuses if one.state.terminated}
    return next((words_of_last_ending(name, code) for name, code in codes.items() if code), "")


def is_stuck(facts: PodFacts) -> bool:
    """Tell whether a pod does not run for a reason that does not pass by itself in a moment."""
    return facts.stage in _STUCK or (facts.stage is Stage.STARTING and bool(facts.words))


def _ending_words(container: ContainerStatus) -> str:
    state, last = container.state, container.last_state
    return words_of_ending(
        ContainerFacts(
            name=container.name,
            ready=container.ready,
            waiting=state.waiting.reason if state.waiting else "",
            exit_code=state.terminated.exit_code if state.terminated else None,
            last_exit_code=last.terminated.exit_code if last.terminated else None,
        )
    )


def is_gated(pod: Pod) -> bool:
    """Tell whether the project's gate holds the pod."""
    return any(gate.name == GATE_PLACEMENT for gate in pod.spec.scheduling_gates)


def waiting_words(pod: Pod) -> str:
    """Return why a container of a pod waits, when it is for more than its turn; empty when it is not."""
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = container.state.waiting
        if waiting and waiting.reason and waiting.reason not in _ORDINARY_WAITS:
            return f"container {container.name}: {waiting.reason}" + (f": {waiting.message}" if waiting.message else "")
    return ""


def workload_facts(reader: ClusterReader, made_by: Controller, template: PodTemplate, resource: str) -> WorkloadFacts:
    """Return the facts of something that makes pods from a template, itself or through ReplicaSets."""
    namespace = made_by.metadata.namespace
    sets = _sets_of(reader, made_by)
    makers = {made_by.metadata.uid, *(one.metadata.uid for one in sets)}
    groups = groups_of(template.spec, resource)
    pods = [pod for pod in reader.pods(namespace) if _is_made_by(pod, makers)]
    facts = WorkloadFacts(
        wanted=_wanted(made_by),
        groups_per_pod=groups,
        pods=[pod_facts(pod) for pod in pods if not pod.metadata.deletion_timestamp],
        ending=[
            EndingPod(pod.metadata.name, groups, until) for pod in pods if (until := pod.metadata.deletion_timestamp)
        ],
        resting=job.why_none if (job := _job(made_by)) is not None else "",
    )
    told = _told_by_sets([made_by, *sets]) or _told_by_events(reader, namespace, makers)
    if not (told and facts.missing):
        return facts
    return replace(facts, failure=CreateFailure(told, parse_denial(told, resource)))


def pods_of(reader: ClusterReader, made_by: Controller) -> Sequence[Pod]:
    """Return the pods that something made, itself or through ReplicaSets."""
    makers = {made_by.metadata.uid, *(one.metadata.uid for one in _sets_of(reader, made_by))}
    return [pod for pod in reader.pods(made_by.metadata.namespace) if _is_made_by(pod, makers)]


def _sets_of(reader: ClusterReader, made_by: Controller) -> Sequence[Controller]:
    sets = reader.replica_sets(made_by.metadata.namespace)
    return [one for one in sets if _is_made_by(one, {made_by.metadata.uid})]


def _is_made_by(made: Pod | Controller, makers: set[str]) -> bool:
    owner = made.metadata.controller
    return owner is not None and owner.uid in makers


def _wanted(made_by: Controller) -> int:
    if (job := _job(made_by)) is not None:
        return job.wanted
    nodes = made_by.status.desired_number_scheduled
    return made_by.spec.wanted if nodes is None else nodes


def _job(made_by: Controller) -> JobFacts | None:
    """Return what a Job says of itself; None for anything else."""
    spec, status = made_by.spec, made_by.status
    if spec.parallelism is None:
        return None
    holding = (one for one in status.conditions if one.status == "True")
    return JobFacts(
        parallelism=spec.parallelism,
        completions=spec.completions,
        suspended=spec.suspend,
        succeeded=status.succeeded,
        active=status.active,
        conditions=tuple((one.type, ": ".join(filter(None, (one.reason, one.message)))) for one in holding),
    )


def _told_by_sets(makers: Iterable[Controller]) -> str:
    """Return the refusal that the newest of them tells in a condition, which is there for as long as it lasts."""
    failing = [
        condition.message
        for one in sorted(makers, key=lambda one: one.metadata.creation_timestamp)
        for condition in one.status.conditions
        if condition.type == "ReplicaFailure" and condition.status == "True"
    ]
    return failing[-1] if failing else ""


def _told_by_events(reader: ClusterReader, namespace: str, makers: set[str]) -> str:
    """Return the newest refusal in events, where StatefulSets and Jobs tell theirs; events last an hour."""
    mine = [event for event in reader.creation_failures(namespace) if event.involved_object.uid in makers]
    return max(mine, key=lambda event: event.moment).message if mine else ""
