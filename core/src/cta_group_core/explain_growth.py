"""What a workload may need beside its pods of now: for a rollout, and for what its autoscaler may ask for.

Both are told before they hang. They keep no pod from running, so they are conditions of their own and not obstacles.
"""

from dataclasses import dataclass

from cta_group_core.explain_quota import QuotaFacts
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.rollout import Rollout
from cta_group_core.workload import CONDITION_ROLLOUT_SAFE, CONDITION_SCALE_SAFE

NO_SURGE = "set maxSurge: 0 and maxUnavailable: 1"
"""How a rollout needs no room beside the pods that run."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most pods that an autoscaler may ask for."""

    pods: int
    set_by: str
    """Kind and name of the autoscaler."""


@dataclass(frozen=True, slots=True)
class GrowthFacts:
    """A workload whose pods of now all exist, or not. Numbers in groups where nothing else is said."""

    groups_per_pod: int
    wanted: int
    living: int
    """Its pods that exist and have not ended; more than wanted during a rollout."""
    rollout: Rollout | None = None
    """None: it has no rollouts."""
    ceiling: Ceiling | None = None
    quota: QuotaFacts | None = None
    largest_fit: int | None = None
    """The largest request that some GPU has room for now; None where no node offers groups, or nobody looked."""
    pods_wait: bool = False
    """Whether pods of it wait for room; that is told elsewhere then."""


def growth_conditions(facts: GrowthFacts) -> tuple[Condition, ...]:
    """Return RolloutSafe for what has rollouts, and ScaleSafe for what has an autoscaler."""
    found = (_rollout_safe(facts), _scale_safe(facts))
    return tuple(one for one in found if one is not None)


def _rollout_safe(facts: GrowthFacts) -> Condition | None:
    rollout, wanted = facts.rollout, facts.wanted
    if rollout is None:
        return None
    if not rollout.needs_room_first or wanted == 0:
        return _condition(CONDITION_ROLLOUT_SAFE, ConditionStatus.TRUE, "NeedsNoRoom")
    if facts.living < wanted or facts.pods_wait:
        return _condition(CONDITION_ROLLOUT_SAFE, ConditionStatus.UNKNOWN, "PodsAreMissing")
    if facts.living > wanted:
        return _condition(CONDITION_ROLLOUT_SAFE, ConditionStatus.TRUE, "RollsOut")  # its first new pod came in
    return _first_new_pod(facts, rollout)


def _first_new_pod(facts: GrowthFacts, rollout: Rollout) -> Condition:
    quota, largest, needs = facts.quota, facts.largest_fit, facts.groups_per_pod
    if quota is not None and quota.most - quota.used < needs:
        told = (
            f"{_would_hang(facts, rollout)}, and quota {quota.most} has {max(0, quota.most - quota.used)} left "
            f"(CTAQuota {quota.name}); {NO_SURGE}, or raise its spec.groups to {quota.used + needs}"
        )
        return _condition(CONDITION_ROLLOUT_SAFE, ConditionStatus.FALSE, "SurgeExceedsQuota", told)
    if largest is not None and largest < needs:
        told = (
            f"{_would_hang(facts, rollout)}, and the largest request that a GPU has room for now is {largest}; "
            f"{NO_SURGE}"
        )
        return _condition(CONDITION_ROLLOUT_SAFE, ConditionStatus.FALSE, "NoRoomForSurge", told)
    return _condition(CONDITION_ROLLOUT_SAFE, ConditionStatus.TRUE, "SurgeFits")


def _would_hang(facts: GrowthFacts, rollout: Rollout) -> str:
    pods = "the pod that runs" if facts.wanted == 1 else f"the {facts.wanted} pods that run"
    return (
        f"a rollout would hang: its first new pod needs {facts.groups_per_pod} beside {pods} "
        f"(maxSurge {rollout.surge_words}: up to {rollout.surge * facts.groups_per_pod})"
    )


def _scale_safe(facts: GrowthFacts) -> Condition | None:
    ceiling, each = facts.ceiling, facts.groups_per_pod
    if ceiling is None or facts.quota is None or each == 0:
        return None
    most = facts.quota.ever
    if ceiling.pods * each <= most:
        return _condition(CONDITION_SCALE_SAFE, ConditionStatus.TRUE, "CeilingFits")
    lent = " with all that it may borrow" if most > facts.quota.groups else ""
    told = (
        f"{ceiling.set_by} may ask for {ceiling.pods} pods, {ceiling.pods * each} groups, and CTAQuota "
        f"{facts.quota.name} has {most}{lent}, enough for {most // each}; set maxReplicas: {most // each}, "
        f"or raise its spec.groups to {facts.quota.groups + ceiling.pods * each - most}"
    )
    return _condition(CONDITION_SCALE_SAFE, ConditionStatus.FALSE, "CeilingExceedsQuota", told)


def _condition(kind: str, status: ConditionStatus, reason: str, message: str = "") -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message)
