"""What each node has room for, less what was promised: pods released to it that its plugin does not report yet.

Everything is computed afresh from what the API server told, so a restart forgets nothing: a released pod carries its
candidates in its own node affinity. A pod that is neither bound nor pinned (it slipped past the gate) is nobody's
promise.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from cta_group_core.demand import NO_DEMAND, Demand
from cta_group_core.ending_pods import EndingPod
from cta_group_core.ids import NodeName
from cta_group_core.kept_room import KeptRoom, without
from cta_group_core.names import GATE_PLACEMENT
from cta_group_core.node_choice import NodeOffer
from cta_group_core.scheduling import Load, NodeFacts, PodTerms
from cta_group_core.selectors import Operator
from cta_group_operator.ports import CtaNodeView, PodView
from cta_group_operator.reconcile.view import ClusterView, Room


@dataclass(frozen=True, slots=True)
class Promise:
    """A pod that is being released, as decided."""

    pod: PodView
    nodes: tuple[NodeName, ...]
    shown: bool = False
    """Without nodes, so that an autoscaler sees it."""


def is_gated(pod: PodView) -> bool:
    """Tell whether the gate of placement is on."""
    return GATE_PLACEMENT in pod.gates


def pinned_nodes(terms: PodTerms) -> tuple[NodeName, ...]:
    """Return the nodes that a pod's own affinity names, over all its terms."""
    named: dict[NodeName, None] = {}
    for term in terms.node_terms or ():
        for one in term.fields:
            if one.operator is Operator.IN:
                named.update(dict.fromkeys(NodeName(value) for value in one.values))
    return tuple(named)


class Offers:
    """Every node that publishes a CTANode and exists, in one snapshot, with decisions counted as they are made."""

    def __init__(
        self,
        view: ClusterView,
        promises: Mapping[str, Promise],
        room_of: Callable[[CtaNodeView], Room] | None = None,
        demand: Demand = NO_DEMAND,
        is_unclaimed: Callable[[PodView], bool] = lambda _: False,
    ) -> None:
        """``room_of``: what a CTANode says about room; None: as it says. ``is_unclaimed``: pods that hold nothing."""
        room_of = room_of or view.room_of
        self._tallies: dict[NodeName, _Tally] = {}
        self._all: list[NodeOffer] | None = None
        """Made once until something is counted: each waiting pod of a round asks."""
        started: set[tuple[NodeName, str, str]] = set()
        for cta_node in view.cta_nodes:
            node = view.machine_of(cta_node)
            if node is not None:
                room = room_of(cta_node)
                started |= room.tenants
                self._tallies[cta_node.name] = _Tally(node.facts, room, demand)
        for pod in view.pods:
            if not pod.is_over and not is_unclaimed(pod):
                self._count(pod, promises.get(pod.ref.uid), started)

    def all(self, avoided: Mapping[NodeName, str] = MappingProxyType({})) -> list[NodeOffer]:
        """Return the nodes as placement judges them; ``avoided`` ones are closed, with the words given."""
        if self._all is None:
            self._all = [tally.offer() for tally in self._tallies.values()]
        offers = self._all
        if not avoided:
            return offers
        return [
            replace(offer, closed=avoided[offer.facts.name]) if offer.facts.name in avoided else offer
            for offer in offers
        ]

    def keep(self, kept: KeptRoom, whom: str) -> None:
        """Keep room from whoever is decided after this."""
        self._all = None
        self._tallies[kept.node].keep(kept, whom)

    def promise(self, pod: PodView, nodes: Iterable[NodeName]) -> None:
        """Count a pod on each node that it may go to."""
        self._all = None
        for name in nodes:
            if (tally := self._tallies.get(name)) is not None:
                tally.add(pod, promised=True)

    def _count(self, pod: PodView, promise: Promise | None, started: set[tuple[NodeName, str, str]]) -> None:
        if pod.node is None:
            gated = promise.nodes if promise is not None else ()
            self.promise(pod, gated if is_gated(pod) else pinned_nodes(pod.terms))
        elif (tally := self._tallies.get(pod.node)) is not None:
            has_started = (pod.node, pod.ref.namespace, pod.ref.name) in started
            # One that is being deleted and holds nothing will not start any more.
            tally.add(pod, promised=not has_started and not pod.deleting)
            if has_started and pod.deleting:
                tally.ends(EndingPod(pod.ref.name, pod.groups, pod.ends))


class _Tally:
    """One node while it is counted."""

    def __init__(self, facts: NodeFacts, room: Room, demand: Demand) -> None:
        self._facts = facts
        self._demand = demand
        self._room = room
        self._in_flight: list[int] = []
        self._sums = [0, 0, 0, 0]
        self._ending: list[EndingPod] = []
        self._kept: list[tuple[KeptRoom, str]] = []
        self._offer: NodeOffer | None = None

    def keep(self, kept: KeptRoom, whom: str) -> None:
        """Keep room for a pod; what is kept already stays with whom it was kept for."""
        if all(one.gpu not in {None, kept.gpu} for one, _ in self._kept):
            self._kept.append((kept, whom))
            self._offer = None

    def add(self, pod: PodView, *, promised: bool) -> None:
        """Count one pod."""
        sums, terms = self._sums, pod.terms
        self._sums = [sums[0] + terms.cpu_milli, sums[1] + terms.memory_bytes, sums[2] + 1, sums[3] + pod.groups]
        if promised:
            self._in_flight += pod.requests
        self._offer = None

    def ends(self, pod: EndingPod) -> None:
        """Tell of a pod whose groups come back."""
        self._ending.append(pod)
        self._offer = None

    def offer(self) -> NodeOffer:
        """Return the node as it is counted now."""
        if self._offer is None:
            offer = NodeOffer(
                self._facts,
                self._room.rooms,
                tuple(self._in_flight),
                Load(*self._sums),
                remark=self._room.remark,
                closed=self._room.closed,
                out=self._room.out,
                tenants=self._room.shares,
                demand=self._demand,
                ending=tuple(self._ending),
                has_clusters=self._room.has_clusters,
            )
            for kept, whom in self._kept:
                offer = without(offer, kept, whom)
            self._offer = offer
        return self._offer
