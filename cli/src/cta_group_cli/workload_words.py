"""What a CTAWorkload tells beside its sentence: server and memory, ceiling, what a rollout needs, and warnings."""

from collections.abc import Mapping, Sequence

from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.plurals import counted
from cta_group_core.workload import (
    CONDITION_WITHIN_BUDGET,
    OBSTACLES,
    MemoryPlan,
    RolloutStatus,
    ServerStatus,
    WorkloadStatus,
)


def is_in_the_way(condition: Condition) -> bool:
    """Tell whether a condition of a workload keeps its pods from running."""
    return condition.status is ConditionStatus.FALSE and condition.type in OBSTACLES


def warnings_of(conditions: Sequence[Condition]) -> Sequence[str]:
    """Return what may go wrong later, or serves worse than it could, each with the name of its condition."""
    elsewhere = (*OBSTACLES, CONDITION_WITHIN_BUDGET)
    told = (one for one in conditions if one.status is ConditionStatus.FALSE and one.type not in elsewhere)
    return [f"{one.type}: {one.message or one.reason}." for one in told]


def budget_words(status: WorkloadStatus) -> Sequence[str]:
    """Return whether the latency budget is kept, with the numbers, and the advice; nothing without a budget."""
    told = [one for one in status.conditions if one.type == CONDITION_WITHIN_BUDGET]
    if status.budget is None or not told:
        return ()
    kept = {ConditionStatus.TRUE: "is kept", ConditionStatus.FALSE: "is NOT kept"}.get(told[0].status, "is not judged")
    advice = (f"Advice: {status.budget.advice}.",) if status.budget.advice else ()
    return (f"Its latency budget {status.budget.wanted} {kept}: {told[0].message}.", *advice)


def facts_of(status: WorkloadStatus) -> Mapping[str, str]:
    """Return the further facts, each with its name."""
    facts = {}
    if status.ceiling is not None:
        ceiling = status.ceiling
        facts["most pods"] = f"{ceiling.replicas}, {ceiling.groups} groups ({ceiling.set_by})"
    if status.rollout is not None:
        facts["a rollout"] = _rollout_words(status.rollout)
    if status.server is not None:
        facts["server"] = _server_words(status.server)
        facts |= {f"memory on {plan.product}": _memory_words(plan) for plan in status.server.memory}
    return facts


def _rollout_words(rollout: RolloutStatus) -> str:
    missing = f"{rollout.unavailable_replicas} may be missing meanwhile"
    if not rollout.surge_replicas:
        return f"ends pods before it makes new ones; {missing}"
    pods = counted(rollout.surge_replicas, "pod")
    return f"at most {pods} more, {rollout.surge_groups} groups; {missing}"


def _server_words(server: ServerStatus) -> str:
    name = f"{server.engine} {server.version}" if server.version else server.engine
    arguments = f": {' '.join(server.arguments)}" if server.arguments else ""
    return f"{name} in container {server.container}, arguments as {server.arguments_form}{arguments}"


def _memory_words(plan: MemoryPlan) -> str:
    weights = "" if plan.weights_mib is None else f", weights about {plan.weights_mib}"
    cache = "" if plan.cache_mib is None else f", {plan.cache_mib} left for the KV cache"
    return (
        f"{plan.slice_mib} MiB: context {plan.context_mib}, reserve {plan.reserve_mib}{weights}{cache}; "
        f"--gpu-memory-utilization at most {plan.utilization}"
    )
