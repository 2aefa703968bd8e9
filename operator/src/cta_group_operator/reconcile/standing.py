"""What each node has with the pods that are bound to it, kept from round to round.

Most nodes are as they were in the round before. Counting ten thousand pods anew in each took more than all decisions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cta_group_core.demand import Demand
from cta_group_core.ending_pods import EndingPod
from cta_group_core.ids import NodeName
from cta_group_core.node_choice import NodeOffer
from cta_group_core.scheduling import Load, NodeFacts
from cta_group_operator.ports import CtaNodeView, NodeView, PodView
from cta_group_operator.reconcile.view import ClusterView, Room


@dataclass(slots=True)
class _Known:
    """A node as it was counted, and of what."""

    cta_node: CtaNodeView
    machine: NodeView
    room: Room
    pods: int
    """:meth:`PodPlaces.state_of` then."""
    others: Load
    offer: NodeOffer


@dataclass(frozen=True, slots=True)
class _Going:
    """A node with pods on their way there, each by its uid and version."""

    alone: NodeOffer
    going: tuple[tuple[str, str], ...]
    together: NodeOffer


class StandingNodes:
    """Nodes that publish a CTANode and exist, without pods that are bound nowhere."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._known: dict[NodeName, _Known] = {}
        self._going: dict[NodeName, _Going] = {}

    def offers(self, room_of: Callable[[CtaNodeView], Room], demand: Demand) -> dict[NodeName, NodeOffer]:
        """Return all of them as they are now; only those of which something changed are counted anew."""
        known = ((one.name, self._now(one, room_of(one), demand)) for one in self._view.cta_nodes)
        self._known = {name: now for name, now in known if now is not None}
        self._going = {name: kept for name, kept in self._going.items() if name in self._known}
        return {name: now.offer for name, now in self._known.items()}

    def with_going(self, offer: NodeOffer, pods: Sequence[PodView]) -> NodeOffer:
        """Return one of them with pods on their way there that are bound nowhere yet: the same until either changes."""
        name, going = offer.facts.name, tuple((pod.ref.uid, pod.resource_version) for pod in pods)
        known = self._going.get(name)
        if known is None or known.alone is not offer or known.going != going:
            together = offer
            for pod in pods:
                together = together.promising(pod.requests, pod.terms.load(pod.groups))
            known = self._going[name] = _Going(offer, going, together)
        return known.together

    def _now(self, cta_node: CtaNodeView, room: Room, demand: Demand) -> _Known | None:
        """Return a node as it is now, as it was counted where nothing changed; None when it does not exist."""
        name = cta_node.name
        known, machine, pods = self._known.get(name), self._view.nodes.get(name), self._view.places.state_of(name)
        others = self._view.others.of(name)
        if (
            known is not None
            and known.cta_node is cta_node
            and known.machine is machine
            and known.room is room
            and known.pods == pods
            and known.others is others
        ):
            if known.offer.demand is not demand:
                known.offer = known.offer.amid(demand)
            return known
        if machine is None or self._view.machine_of(cta_node) is None:
            return None
        offer = _counted(machine.facts, room, self._view.places.on(name), demand, others)
        return _Known(cta_node, machine, room, pods, others, offer)


def _has_started(pod: PodView, facts: NodeFacts, room: Room) -> bool:
    """Tell whether the node reports a pod. What is less than a new one asks for is held by an earlier of its name."""
    if (facts.name, pod.ref.namespace, pod.ref.name) not in room.tenants:
        return False
    if pod.phase != "Pending" or pod.deleting:
        return True
    who = (pod.ref.namespace, pod.ref.name)
    held = sum(one.groups for shares in room.shares.values() for one in shares if (one.namespace, one.pod) == who)
    return held >= pod.groups


def _counted(facts: NodeFacts, room: Room, pods: tuple[PodView, ...], demand: Demand, others: Load) -> NodeOffer:
    """Count the pods of a node. One that its plugin does not report yet is on its way, unless it ends before."""
    in_flight: list[int] = []
    ending: list[EndingPod] = []
    there = [pod for pod in pods if not pod.is_over]
    for pod in there:
        has_started = _has_started(pod, facts, room)
        if not has_started and not pod.deleting:  # one that ends and holds nothing will not start any more
            in_flight += pod.requests
        elif has_started and pod.deleting:
            ending.append(EndingPod(pod.ref.name, pod.groups, pod.ends))
    return NodeOffer(
        facts,
        room.rooms,
        tuple(in_flight),
        Load(
            cpu_milli=sum(pod.terms.cpu_milli for pod in there),
            memory_bytes=sum(pod.terms.memory_bytes for pod in there),
            pods=len(there),
            groups=sum(pod.groups for pod in there),
        ),
        others=others,
        remark=room.remark,
        closed=room.closed,
        out=room.out,
        tenants=room.shares,
        demand=demand,
        ending=tuple(ending),
        has_clusters=room.has_clusters,
    )
