"""Why a workload is not running, in one sentence with numbers, and the conditions that say the same for programs."""

from collections import Counter
from dataclasses import dataclass

from cta_group_core.bounded import shortened
from cta_group_core.denials import Denial, refusal_words
from cta_group_core.ending_pods import still_ending
from cta_group_core.explain_facts import CreateFailure, PodFacts, Stage, WorkloadFacts
from cta_group_core.explain_growth import NO_SURGE, growth_conditions
from cta_group_core.explain_quota import denied_by
from cta_group_core.names import QUOTA_OBJECT_NAME
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.workload import (
    CONDITION_ADMISSIBLE,
    CONDITION_CLUSTERS,
    CONDITION_PLACED,
    CONDITION_WITHOUT_WEBHOOK,
)

__all__ = ["CreateFailure", "PodFacts", "Stage", "WorkloadFacts", "explain"]

_LONGEST_TEXT = 900


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer: a sentence, and conditions without transition times."""

    message: str
    admissible: Condition
    placed: Condition
    remarks: tuple[Condition, ...] = ()
    """What pods lack that run all the same."""
    growth: tuple[Condition, ...] = ()
    """What may come to be an obstacle."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions, the obstacles in the order in which a pod meets them first."""
        return (self.admissible, self.placed, *self.remarks, *self.growth)


def explain(facts: WorkloadFacts) -> Explanation:
    """Say why the workload is not running; the first obstacle on a pod's way is told first."""
    admissible = _admissible(facts)
    placed = _placed(facts)
    remarks = (*_slipped(facts), *_clusterless(facts))
    obstacles = [one.message for one in (admissible, placed) if one.status is ConditionStatus.FALSE]
    told = obstacles[0] if obstacles else _progress(facts)
    message = "; ".join((told, *(one.message for one in remarks)))
    return Explanation(message, admissible, placed, remarks, growth_conditions(facts.growth))


def _clusterless(facts: WorkloadFacts) -> tuple[Condition, ...]:
    if not facts.without_clusters:
        return ()
    return (_condition(CONDITION_CLUSTERS, "NoThreadBlockClusters", facts.without_clusters),)


def _slipped(facts: WorkloadFacts) -> tuple[Condition, ...]:
    if not facts.slipped:
        return ()
    who = "1 pod was" if facts.slipped == 1 else f"{facts.slipped} pods were"
    told = f"{who} admitted without the webhook: no GPU was chosen and no arguments fitted"
    return (_condition(CONDITION_WITHOUT_WEBHOOK, "AdmittedWithoutWebhook", told, status=ConditionStatus.TRUE),)


def _admissible(facts: WorkloadFacts) -> Condition:
    if facts.failure is None:
        return _condition(CONDITION_ADMISSIBLE, "Admitted", "", status=ConditionStatus.TRUE)
    who = _who(facts.missing, facts.wanted, "cannot be created")
    denial = facts.failure.denial
    if denial is None:
        return _condition(CONDITION_ADMISSIBLE, "CreateRefused", f"{who}: {_short(refusal_words(facts.failure.text))}")
    if denial.not_counted_yet:
        told = (
            f"quota not initialised yet by the cluster: kube-controller-manager has not counted ResourceQuota "
            f"{denial.quota_object}; creation is tried again by itself"
        )
        return _condition(CONDITION_ADMISSIBLE, "QuotaNotCounted", f"{who}: {told}")
    if not denial.about_groups:
        told = f"ResourceQuota {denial.quota_object} has not enough {', '.join(denial.other_resources)}"
        return _condition(CONDITION_ADMISSIBLE, "OtherQuotaExceeded", f"{who}: {told}")
    return _groups_denied(facts, denial, who)


def _groups_denied(facts: WorkloadFacts, denial: Denial, who: str) -> Condition:
    if facts.quota is None or denial.quota_object != QUOTA_OBJECT_NAME:  # one that people made counts beside ours
        told = (
            f"needs {denial.needs}, quota {denial.limit}, used {denial.used}, short {denial.short} "
            f"(ResourceQuota {denial.quota_object}); end something in the namespace, or raise that quota"
        )
        return _condition(CONDITION_ADMISSIBLE, "QuotaExceeded", f"{who}: {told}")
    reason, told = denied_by(facts.quota, denial.needs, missing=facts.missing)
    return _condition(CONDITION_ADMISSIBLE, reason, f"{who}: {told}")


def _placed(facts: WorkloadFacts) -> Condition:
    waiting = [pod for pod in facts.pods if pod.stage in _PLACEMENT_REASONS]
    if waiting:
        first = min(waiting, key=lambda pod: (pod.stage, pod.name))
        same = sum(pod.stage is first.stage for pod in waiting)
        reason, verb = _PLACEMENT_REASONS[first.stage]
        words = f": {_short(first.words)}" if first.words else ""
        return _condition(
            CONDITION_PLACED, reason, f"{_waiting(facts, same, verb)}{words}{_instead(facts, first.stage)}"
        )
    if not any(pod.stage in _ON_A_NODE for pod in facts.pods):
        return _condition(CONDITION_PLACED, "NoPods", "", status=ConditionStatus.UNKNOWN)
    return _condition(CONDITION_PLACED, "Placed", "", status=ConditionStatus.TRUE)


def _waiting(facts: WorkloadFacts, count: int, verb: str) -> str:
    """Say which pods wait. A rollout makes pods beside those that run: not all that are wanted wait then."""
    if count <= facts.wanted - facts.running:
        return _who(count, facts.wanted, verb)
    serves = "runs" if facts.running == 1 else "run"
    who = f"{count} further pods {_plural(verb)}" if count > 1 else f"a further pod {verb}"
    return f"{who} ({facts.running} of {facts.wanted} {serves})"


def _instead(facts: WorkloadFacts, stage: Stage) -> str:
    """Say what spares a rollout that room, where all that are wanted run and it ends none of them first."""
    hangs = facts.rollout is not None and facts.rollout.needs_room_first
    if stage is not Stage.NO_ROOM or not hangs or facts.living <= facts.wanted or facts.running < facts.wanted:
        return ""
    return f"; or let the rollout end a pod first: {NO_SURGE}"


_ON_A_NODE = frozenset({Stage.STARTING, Stage.CRASHING, Stage.RUNNING, Stage.DONE})
_PLACEMENT_REASONS = {
    Stage.HELD: ("ReleaseRefused", "cannot be released"),
    Stage.NO_ROOM: ("NoRoom", "waits for room"),
    Stage.WAITING: ("Waiting", "waits for its node to be chosen"),
    Stage.UNSCHEDULED: ("Unschedulable", "is released but not scheduled"),
}


_PROGRESS_VERBS = {
    Stage.STARTING: "starting",
    Stage.CRASHING: "crashing",
    Stage.FAILED: "failed",
    Stage.DONE: "done",
}


def _progress(facts: WorkloadFacts) -> str:
    each = f", {facts.groups_per_pod} groups each" if facts.groups_per_pod else ""
    stages = Counter(pod.stage for pod in facts.pods)
    told = f"{facts.running} of {facts.wanted} pods run{each}"
    for stage, verb in _PROGRESS_VERBS.items():
        if stages[stage]:
            first = min((pod for pod in facts.pods if pod.stage is stage), key=lambda pod: (not pod.words, pod.name))
            told += f"; {stages[stage]} {verb}" + (f" ({first.name}: {_short(first.words)})" if first.words else "")
    return "; ".join(filter(None, (told, *_absent(facts), facts.lost, facts.resting)))


def _absent(facts: WorkloadFacts) -> tuple[str, ...]:
    """Say why pods are missing that nobody refuses: those before them are still ending, or nothing was made yet."""
    if not facts.missing:
        return ()
    if facts.ending:
        return (still_ending(facts.ending),)
    return () if facts.pods else ("no pod exists yet",)


_PLURALS = {"waits": "wait", "is": "are"}


def _who(count: int, wanted: int, verb: str) -> str:
    if count == 0:
        return f"a further pod {verb}"
    if wanted <= 1:
        return f"the pod {verb}"
    if count == 1:
        return f"1 of {wanted} pods {verb}"
    return f"{count} of {wanted} pods {_plural(verb)}"


def _plural(verb: str) -> str:
    first, _, rest = verb.partition(" ")
    return f"{_PLURALS.get(first, first)} {rest.replace('its node', 'their nodes')}"


def _short(text: str) -> str:
    return shortened(text, _LONGEST_TEXT)


def _condition(kind: str, reason: str, message: str, *, status: ConditionStatus = ConditionStatus.FALSE) -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message)
