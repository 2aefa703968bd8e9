"""What each node has room for, less what was promised: pods released to it that its plugin does not report yet.

Everything follows from what the API server told, so a restart forgets nothing: a released pod carries its candidates in
its own node affinity. A pod that is neither bound nor pinned (it slipped past the gate) is nobody's promise.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from cta_group_core.demand import NO_DEMAND, Demand
from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.kept_room import KeptRoom, without
from cta_group_core.names import GATE_PLACEMENT
from cta_group_core.node_choice import NodeOffer
from cta_group_core.scheduling import PodTerms
from cta_group_core.selectors import Operator
from cta_group_operator.ports import Clock, CtaNodeView, PodView
from cta_group_operator.reconcile.demand_reader import DemandReader
from cta_group_operator.reconcile.standing import StandingNodes
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


def _released_to(pod: PodView, promise: Promise | None) -> tuple[NodeName, ...]:
    """Return the nodes that keep room for a pod that is bound nowhere."""
    if not is_gated(pod):
        return pinned_nodes(pod.terms)
    return promise.nodes if promise is not None else ()


class Offers:
    """Every node that publishes a CTANode and exists, in one snapshot, with decisions counted as they are made."""

    def __init__(
        self,
        view: ClusterView,
        promises: Mapping[str, Promise],
        room_of: Callable[[CtaNodeView], Room] | None = None,
        *,
        demand: Demand = NO_DEMAND,
        is_unclaimed: Callable[[PodView], bool] = lambda _: False,
        standing: StandingNodes | None = None,
    ) -> None:
        """``room_of``: what a CTANode says about room; None: as it says. ``is_unclaimed``: pods that hold nothing.

        ``standing``: what is kept from one snapshot to the next; None: nothing.
        """
        standing = standing or StandingNodes(view)
        self._offers = standing.offers(room_of or view.room_of, demand)
        self._kept: defaultdict[NodeName, set[GpuUuid | None]] = defaultdict(set)
        going: defaultdict[NodeName, list[PodView]] = defaultdict(list)
        for pod in view.places.nowhere():
            if not (pod.is_over or pod.deleting or is_unclaimed(pod)):  # nobody binds a pod that is being deleted
                for name in _released_to(pod, promises.get(pod.ref.uid)):
                    going[name].append(pod)
        for name, pods in going.items():
            if (offer := self._offers.get(name)) is not None:
                self._offers[name] = standing.with_going(offer, pods)

    def all(self, avoided: Mapping[NodeName, str] = MappingProxyType({})) -> list[NodeOffer]:
        """Return the nodes as placement judges them; ``avoided`` ones are closed, with the words given."""
        offers = list(self._offers.values())
        if not avoided:
            return offers
        return [
            replace(offer, closed=avoided[offer.facts.name]) if offer.facts.name in avoided else offer
            for offer in offers
        ]

    def keep(self, kept: KeptRoom, whom: str) -> None:
        """Keep room from whoever is decided after this; what is kept already stays with whom it was kept for."""
        there = self._kept[kept.node]
        if not there & {None, kept.gpu}:
            there.add(kept.gpu)
            self._offers[kept.node] = without(self._offers[kept.node], kept, whom)

    def promise(self, pod: PodView, nodes: Iterable[NodeName]) -> None:
        """Count a pod on each node that it may go to."""
        load = pod.terms.load(pod.groups)
        for name in nodes:
            if (offer := self._offers.get(name)) is not None:
                self._offers[name] = offer.promising(pod.requests, load)


class Snapshots:
    """Makes the offers of one round after another; what stays the same between them is counted once."""

    def __init__(
        self,
        view: ClusterView,
        clock: Clock,
        room_of: Callable[[CtaNodeView], Room] | None,
        is_unclaimed: Callable[[PodView], bool],
    ) -> None:
        """``room_of``, ``is_unclaimed``: as of :class:`Offers`."""
        self._view = view
        self._room_of = room_of
        self._is_unclaimed = is_unclaimed
        self._demand = DemandReader(view, clock)
        self._standing = StandingNodes(view)

    def now(self, promises: Mapping[str, Promise]) -> Offers:
        """Return what every node has room for."""
        return Offers(
            self._view,
            promises,
            self._room_of,
            demand=self._demand.now(),
            is_unclaimed=self._is_unclaimed,
            standing=self._standing,
        )
