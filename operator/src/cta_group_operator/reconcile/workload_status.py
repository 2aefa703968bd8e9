"""The status of a CTAWorkload out of what is known of the workload. Pure."""

from typing import Protocol

from cta_group_core.explain import WorkloadFacts, explain
from cta_group_core.nodes import Condition
from cta_group_core.workload import CeilingStatus, RolloutStatus, ServerStatus, WorkloadOwner, WorkloadStatus
from cta_group_operator.ports import Json, ObjectRef

ServerAnswer = tuple[ServerStatus | None, Condition | None]
"""The server of a workload, and whether its arguments fit; None where that is not known."""


class ServerReader(Protocol):
    """Finds the inference server in a pod template."""

    def read(self, template: bytes) -> tuple[ServerStatus, Condition] | None:
        """Return what it is, and whether its arguments fit; None where there is none. ``template``: JSON."""

    def missed(self, pod: Json) -> str:
        """Return the arguments that a pod which came past admission would have got, in words; empty for none."""


def status_of(top: ObjectRef, facts: WorkloadFacts, server: ServerAnswer) -> WorkloadStatus:
    """Return what is told of a workload, without times."""
    answer = explain(facts)
    found, aligned = server
    return WorkloadStatus(
        owner=WorkloadOwner(api_version=top.api_version, kind=top.kind, name=top.name),
        message=answer.message,
        groups_per_pod=facts.groups_per_pod,
        replicas_wanted=facts.wanted,
        replicas_running=facts.running,
        ceiling=_ceiling(facts),
        rollout=_rollout(facts),
        server=found,
        conditions=(*answer.conditions, *([aligned] if aligned is not None else ())),
    )


def _ceiling(facts: WorkloadFacts) -> CeilingStatus | None:
    ceiling = facts.ceiling
    if ceiling is None:
        return None
    return CeilingStatus(replicas=ceiling.pods, groups=ceiling.pods * facts.groups_per_pod, set_by=ceiling.set_by)


def _rollout(facts: WorkloadFacts) -> RolloutStatus | None:
    rollout = facts.rollout
    if rollout is None:
        return None
    return RolloutStatus(
        surge_replicas=rollout.surge,
        surge_groups=rollout.surge * facts.groups_per_pod,
        unavailable_replicas=rollout.unavailable,
    )
