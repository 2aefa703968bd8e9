"""Which nodes a waiting pod may be released to. The GPU is the plugin's choice; this asks the plugin's own rule.

Among the nodes where the pod fits in every order of arrival, the one where it leaves the fewest groups on its GPU comes
first, then the fuller node, then the first by name. Up to two more nodes are named where the pod is just as safe, so
that something that cannot be judged here (volumes, ports, anti-affinity) does not trap it.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cta_group_core.arrival import arrive, every_order_fits
from cta_group_core.errors import DoesNotFit, RequestNotAllowed, RequestRefused
from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.moves import HeldGpu, Tenant, helpful_move
from cta_group_core.placement import choose_gpus
from cta_group_core.rooms import GpuRoom, by_capacity, describe_fit, describe_free, largest_fit
from cta_group_core.scheduling import Load, NodeFacts, PodTerms, objection

MAX_CANDIDATES = 3
_NODES_TOLD = 3


@dataclass(frozen=True)
class NodeOffer:
    """A node as placement sees it."""

    facts: NodeFacts
    rooms: tuple[GpuRoom, ...]
    """Healthy GPUs with what kubelet has not given out."""
    in_flight: tuple[int, ...] = ()
    """Requests of pods that were released to this node and that its plugin does not report yet."""
    load: Load = field(default_factory=Load)
    """What known pods take of it; the scheduler knows the others."""
    remark: str = ""
    """What is to be known of what is said about the node; empty: nothing."""
    closed: str = ""
    """Why no pod may be released there at the moment, whatever is free; empty when pods may."""
    kept: tuple[str, ...] = ()
    """What of it is kept for others and not among ``rooms``, in words."""
    out: str = ""
    """Which GPUs there take nobody now and are not among ``rooms``, in words; empty when all do."""
    tenants: Mapping[GpuUuid, Sequence[Tenant]] = field(default_factory=dict)
    """Who is on each GPU."""

    @cached_property
    def promised(self) -> tuple[GpuRoom, ...]:
        """The GPUs when all in flight have arrived in the order given. One that has no room any more takes none."""
        rooms = self.rooms
        for groups in self.in_flight:
            try:
                rooms = arrive(rooms, groups)
            except RequestRefused:
                continue
        return rooms


Rank = tuple[int, int, str]
"""Groups left on the GPU that the pod would get, groups left on the node, name. Smaller is better."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one node says to one pod."""

    node: NodeName
    rank: Rank | None
    """None when the pod can not be released there."""
    why_not: str = ""
    has_gpu: bool = True
    """False when the node is out of question for another reason than its GPUs."""
    ever: bool = True
    """False when no GPU there could serve the request even if it were empty."""
    largest: int = 0


def safe_nodes(pod: PodTerms, requests: Sequence[int], offers: Iterable[NodeOffer]) -> tuple[NodeName, ...]:
    """Return the nodes to release a pod to, best first; none when no node can take it (:func:`refusal` says why).

    ``requests``: groups of each container that asks.
    Most nodes of a large cluster are ranked by a glance at their GPUs, and only the best are judged in full.
    """
    ranked = [(rank, offer) for offer in offers if (rank := _likely_rank(pod, requests, offer)) is not None]
    heapq.heapify(ranked)
    chosen: list[NodeName] = []
    while ranked and len(chosen) < MAX_CANDIDATES:
        _, offer = heapq.heappop(ranked)
        if judge(pod, requests, offer).rank is not None:
            chosen.append(offer.facts.name)
    return tuple(chosen)


def _likely_rank(pod: PodTerms, requests: Sequence[int], offer: NodeOffer) -> Rank | None:
    """Return the rank that the node has unless something but its GPUs speaks against it; None when they do."""
    if offer.closed:
        return None
    groups, rooms = requests[0], offer.promised
    alone = [room for room in rooms if room.units.capacity >= groups and room.units.allows(groups)]
    if len(requests) > 1 or not alone:
        return judge(pod, requests, offer).rank
    least = min((room.free for room in alone if room.takes(groups)), default=None)
    if least is None:
        return None
    return (least - groups, sum(room.free for room in rooms) - groups, offer.facts.name)


def refusal(pod: PodTerms, requests: Sequence[int], offers: Iterable[NodeOffer]) -> RequestRefused:
    """Return the error that says why no node can take the pod; call it when that is so.

    :class:`RequestNotAllowed` when no node could ever serve it, :class:`DoesNotFit` when none has room now; the message
    says what is free on each GPU and what would fit.
    """
    judged = [(offer, judge(pod, requests, offer)) for offer in offers]
    verdicts = [verdict for _, verdict in judged]
    able = any(one.ever for one in verdicts if one.has_gpu)
    usable = [offer for offer, verdict in judged if verdict.has_gpu and not offer.closed]
    told = "; ".join((_refusal(requests, verdicts), *_move_words(requests, usable)))
    return (DoesNotFit if able or not verdicts else RequestNotAllowed)(told)


def _move_words(requests: Sequence[int], offers: Iterable[NodeOffer]) -> tuple[str, ...]:
    """Say which pod is in the way of a request for one GPU, where moving that one is enough."""
    if len(requests) > 1:
        return ()
    gpus = (
        HeldGpu(offer.facts.name, room, offer.tenants.get(room.uuid, ())) for offer in offers for room in offer.promised
    )
    move = helpful_move(requests[0], tuple(gpus))
    return () if move is None else (str(move),)


def judge(pod: PodTerms, requests: Sequence[int], offer: NodeOffer) -> Verdict:
    """Say whether one node can take a pod, and how well."""
    name = offer.facts.name
    if why_not := objection(pod, offer.facts, offer.load):
        return Verdict(name, None, why_not, has_gpu=False)
    if offer.closed:
        return Verdict(name, None, offer.closed)
    try:
        rooms, left_over = _after(offer, requests)
    except RequestRefused as refused:
        return _refused(offer, requests, refused)
    if not every_order_fits(offer.rooms, (*offer.in_flight, *requests)):
        told = f"room is promised to {len(offer.in_flight)} containers on their way; asked again when they have started"
        return Verdict(name, None, told, largest=largest_fit(offer.rooms))
    if sum(requests) > (counted := offer.facts.groups - offer.load.groups):
        told = (
            f"a GPU has room, but kubelet advertises {offer.facts.groups} groups, of which {max(0, counted)} are left"
        )
        return Verdict(name, None, told, largest=largest_fit(offer.rooms))
    return Verdict(name, (left_over, sum(room.free for room in rooms), name))


def _after(offer: NodeOffer, requests: Sequence[int]) -> tuple[tuple[GpuRoom, ...], int]:
    """Return the rooms when all have arrived, and the groups left on the GPUs that the pod got."""
    rooms = offer.promised
    left_over = 0
    for groups in requests:
        left_over += sum(room.free for room in choose_gpus(rooms, groups)) - groups
        rooms = arrive(rooms, groups)
    return rooms, left_over


def _refused(offer: NodeOffer, requests: Sequence[int], refused: RequestRefused) -> Verdict:
    rooms = offer.promised
    if isinstance(refused, RequestNotAllowed) and not offer.kept:
        told = "; ".join(filter(None, (_never(rooms, requests), offer.out)))
        return Verdict(offer.facts.name, None, told, ever=False, largest=largest_fit(rooms))
    told = "; ".join(filter(None, (describe_free(rooms), describe_fit(rooms), *offer.kept, offer.out, offer.remark)))
    return Verdict(offer.facts.name, None, told, largest=largest_fit(rooms))


def _never(rooms: Sequence[GpuRoom], requests: Sequence[int]) -> str:
    """Say why no GPU there could serve the requests even if it were empty."""
    if not rooms:
        return "no healthy GPU offers groups"
    if all(any(room.units.allows(groups) for room in rooms) for groups in requests):
        there = (f"{len(same)} of {capacity}" for capacity, same in sorted(by_capacity(rooms).items()))
        return f"more than the GPUs there have: {', '.join(there)} groups"
    return f"not allowed there: {'; or '.join(sorted({room.units.allowed() for room in rooms}))}"


def _refusal(requests: Sequence[int], verdicts: Sequence[Verdict]) -> str:
    asked = " + ".join(str(groups) for groups in requests)
    if not verdicts:
        return f"asked for {asked} groups, but no node offers any: no CTANode is published (is the plugin running?)"
    by_gpu = _told(sorted((one for one in verdicts if one.has_gpu), key=lambda one: (-one.largest, one.node)))
    others = _told(sorted((one for one in verdicts if not one.has_gpu), key=lambda one: one.node))
    parts = [f"asked for {asked} groups, but no node has room"] if by_gpu else [f"asked for {asked} groups"]
    parts += [by_gpu] if by_gpu else []
    parts += [f"out of the question: {others}"] if others else []
    return "; ".join(parts) if not by_gpu else f"{parts[0]}: {'; '.join(parts[1:])}"


def _told(verdicts: Sequence[Verdict]) -> str:
    """Name the nodes, those that say the same together, at most three sayings."""
    by_words: dict[str, list[str]] = {}
    for one in verdicts:
        by_words.setdefault(one.why_not, []).append(one.node)
    sayings = [f"{_names(nodes)}: {words}" for words, nodes in list(by_words.items())[:_NODES_TOLD]]
    hidden = sum(len(nodes) for nodes in list(by_words.values())[_NODES_TOLD:])
    return "; ".join(sayings) + (f"; and {hidden} more nodes" if hidden else "")


def _names(nodes: Sequence[str]) -> str:
    return ", ".join(nodes[:2]) + (f" and {len(nodes) - 2} more" if len(nodes) > 2 else "")  # noqa: PLR2004 - a pair
