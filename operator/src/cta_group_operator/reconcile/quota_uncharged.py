"""Groups that GPUs still hold for pods that Kubernetes charges no longer.

It stops to charge a deleted pod some time after its grace (QuotaV1Pod in Kubernetes 1.37's quota evaluator of pods), so
that a lost node does not keep a team from work, and charges nobody for a pod whose object was removed. The containers
may run on in both cases, and only the node knows: that ``used`` leaves them out is told, and nobody is charged here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from cta_group_core.ids import NodeName
from cta_group_core.moments import seconds_between
from cta_group_operator.ports import Clock, LimitView, NodeView
from cta_group_operator.reconcile.quota_scope import Scope
from cta_group_operator.reconcile.view import ClusterView

_LOOK_AGAIN_SECONDS: Final = 5.0
"""Pods and what is charged for them are watched apart: a round may see a successor's charge before the successor."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod that should be gone and holds groups. ``node_lost``: Kubernetes does not hear of its node's kubelet."""

    namespace: str
    pod: str
    node: NodeName
    groups: int
    node_lost: bool


@dataclass(frozen=True, slots=True)
class Uncharged:
    """``groups``: what GPUs hold and ``used`` leaves out, over the namespaces of a quota."""

    groups: int = 0
    holders: tuple[Holder, ...] = ()
    """By node, namespace and name; empty when ``groups`` is 0."""


class UnchargedHolders:
    """Finds them in what the CTANodes say is held."""

    def __init__(self, view: ClusterView, clock: Clock) -> None:
        self._view = view
        self._clock = clock
        self._lost: set[NodeName] = set()
        view.nodes.subscribe(self._node_changed)

    def of(self, scope: Scope) -> Uncharged:
        """Return what a quota's ``used`` leaves out now; nothing where the cluster has not counted yet."""
        groups, holders = 0, list[Holder]()
        for space, limit in scope.limits.items():
            found = self._found(space)
            if missing := self._missing(space, limit, found):
                groups += missing
                holders += found
        return Uncharged(groups, tuple(sorted(holders, key=lambda one: (one.node, one.namespace, one.pod))))

    def seconds_left(self, scopes: Iterable[Scope]) -> float | None:
        """Return when somebody should look again: in a moment, when a pod's grace is over, or None for never."""
        spaces = [space for scope in scopes for space in scope.limits]
        if any(self._found(space) for space in spaces):
            return _LOOK_AGAIN_SECONDS
        ends = [pod.ends for space in spaces for pod in self._view.pods_in(space) if pod.deleting and pod.node]
        now = self._clock.utc_text()
        return min((seconds_between(now, end) for end in ends if end > now), default=None)

    def _found(self, space: str) -> list[Holder]:
        """Return the pods of a namespace that should be gone and hold something, charged or not."""
        return [*self._past_their_grace(space), *self._removed(space)]

    def _missing(self, space: str, limit: LimitView, found: list[Holder]) -> int:
        """Return what is charged too little: Kubernetes goes on charging pods for some time after their grace."""
        if limit.used is None or not found:
            return 0
        pods = self._view.pods_in(space)
        known = {(pod.node, pod.ref.name) for pod in pods}
        removed = sum(one.groups for one in found if (one.node, one.pod) not in known)
        more = sum(pod.groups for pod in pods) + removed - limit.used
        return max(0, min(more, sum(one.groups for one in found)))

    def _past_their_grace(self, space: str) -> Iterator[Holder]:
        now = self._clock.utc_text()
        for pod in self._view.pods_in(space):
            if pod.deleting and pod.node is not None and pod.ends <= now:
                yield from self._holder(space, pod.ref.name, pod.node)

    def _removed(self, space: str) -> Iterator[Holder]:
        """Find who holds groups on lost nodes and has no pod there. Other nodes tell of such an end in a moment."""
        for name in self._lost:
            for namespace, holder in self._tenants(name):
                pod = self._view.pods.get(holder, space)
                if namespace == space and (pod is None or pod.is_over or pod.node != name):
                    yield from self._holder(space, holder, name)

    def _holder(self, space: str, pod: str, node: NodeName) -> Iterator[Holder]:
        cta_node = self._view.cta_nodes.get(node)
        if cta_node is None or (space, pod) not in self._tenants(node):
            return
        held = (one for gpu in cta_node.status.gpus for one in gpu.allocations)
        groups = sum(one.groups for one in held if (one.namespace, one.pod) == (space, pod))
        yield Holder(space, pod, node, groups, node in self._lost)

    def _tenants(self, node: NodeName) -> frozenset[tuple[str, str]]:
        """Return namespace and name of the pods that hold something on a node that exists."""
        found = self._view.cta_nodes.get(node)
        if found is None or self._view.machine_of(found) is None:
            return frozenset()
        return frozenset((namespace, pod) for _, namespace, pod in self._view.room_of(found).tenants)

    def _node_changed(self, before: NodeView | None, after: NodeView | None) -> None:
        if after is not None and not after.facts.is_heard_of:
            self._lost.add(after.facts.name)
        elif gone := after or before:
            self._lost.discard(gone.facts.name)
