"""Which budget a workload has, and which of its pods are asked. Pure reads of the view."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cta_group_core.budget.sizes import Sizes, smallest_for_memory
from cta_group_core.budget.target import MetricsTarget
from cta_group_core.vllm.gpu import GpuKind, kinds_of
from cta_group_core.vllm.judge import model_size_of
from cta_group_core.vllm.plan import Server
from cta_group_operator.ports import ObjectRef, PodView
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.workload_facts import pods_under
from cta_group_operator.resources import is_followed
from cta_group_operator.server_metrics import BudgetView

MOST_PODS: Final = 32
"""Pods of one workload that are read; more of the same kind tell nothing new."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The pods of one workload that are read, and where."""

    pods: tuple[tuple[PodView, MetricsTarget], ...]
    running: int
    """How many run."""
    problem: str = ""
    """Why one of them is not read; empty when nothing is known to be in the way."""


def budget_of(top: ObjectRef, view: ClusterView) -> BudgetView | None:
    """Return the budget of a workload: what its followed top owner says, else what is said of its newest pod.

    Where it has no pod, what makes them says it. None without a budget.
    """
    known = view.controller(top.uid)
    if known is not None:
        return known.budget
    if is_followed(top):
        return None
    pods = sorted(pods_under(top, view), key=lambda pod: (pod.created, pod.ref.name), reverse=True)
    told = (*(_budget_of_pod(pod, view) for pod in pods), *(one.budget for one in view.controllers_under(top)))
    return next((one for one in told if one is not None), None)


def asked(top: ObjectRef, budget: BudgetView, view: ClusterView) -> Asked:
    """Return the pods to read. Each is asked at the port of its own template, which another revision may have."""
    pods = [pod for pod in pods_under(top, view) if pod.phase == "Running" and not pod.deleting and pod.address]
    pods.sort(key=lambda pod: pod.ref.uid)
    served = [(pod, _budget_of_pod(pod, view) or budget) for pod in pods]
    problems = [one.served.problem for _, one in served if one.served.problem]
    targets = [(pod, one.served.target) for pod, one in served if one.served.target is not None]
    return Asked(tuple(targets[:MOST_PODS]), len(pods), problems[0] if problems else "")


def _budget_of_pod(pod: PodView, view: ClusterView) -> BudgetView | None:
    """Return what the pod says, or the template that it was made from; None where only its workload says it."""
    maker = view.controller(pod.owner.uid) if pod.owner is not None else None
    return pod.budget if maker is None else maker.budget


def sizes_of(pods: Sequence[PodView], view: ClusterView) -> tuple[Sizes, tuple[GpuKind, ...]]:
    """Return the sizes that the GPUs take on which the pods run, and the kinds of these GPUs."""
    nodes = [view.cta_nodes.get(name) for name in sorted({pod.node for pod in pods if pod.node is not None})]
    kinds = frozenset().union(*(kinds_of(node.status) for node in nodes if node is not None))
    groups = max((request for pod in pods for request in pod.requests), default=0)
    return Sizes.of(groups, kinds), tuple(kinds)


def smallest(budget: BudgetView, sizes: Sizes, kinds: Sequence[GpuKind], cache_usage: float) -> int | None:
    """Return the smallest size that holds the memory in use; None where nobody knows."""
    detected = budget.served.detected
    if detected is None:
        return None
    shares = [share for kind in kinds if (share := kind.share(sizes.groups)) is not None]
    server = Server(detected.arguments, shares, detected.version, model_size_of(detected))
    return smallest_for_memory(server, sizes.allowed, sizes.groups, kinds, cache_usage)
