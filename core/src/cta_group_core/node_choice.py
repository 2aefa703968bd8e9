"""Which nodes a waiting pod may be released to. The GPU is the plugin's choice; this asks the plugin's own rule.

Among the nodes where the pod fits in every order of arrival, what decides, one after the other: cpu and memory that are
left of what pods without groups took when they were counted last, GPUs with thread-block clusters if the pod needs them
(:mod:`cta_group_core.cluster_shape`), a GPU model that fewer other pods insist on, fewer groups stranded
(:mod:`cta_group_core.demand`), fewer groups left on the GPU that it gets, fewer neighbours there that it disturbs
(:mod:`cta_group_core.access_pattern`), fewer groups left on the node, the name.
Up to two more nodes are named where the pod is just as safe, so that something that cannot be judged here (volumes,
ports, anti-affinity) does not trap it.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cta_group_core.arrival import arrive, every_order_fits
from cta_group_core.demand import NO_DEMAND, Demand
from cta_group_core.ending_pods import EndingPod, coming_back
from cta_group_core.errors import DoesNotFit, RequestNotAllowed, RequestRefused
from cta_group_core.glance import Glance
from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.moves import HeldGpu, Tenant, helpful_move
from cta_group_core.placement import choose_gpus
from cta_group_core.rooms import GpuRoom, by_capacity, describe_fit, describe_free, largest_fit
from cta_group_core.scheduling import Load, NodeFacts, PodTerms, names_objection, objection, room_objection
from cta_group_core.verdicts import Rank, Verdict, refusal_words

MAX_CANDIDATES = 3
_SIZES_KEPT = 64
_NOT_ADVERTISED = ": its plugin is not registered yet, or under another resource name than the operator's"


@dataclass(frozen=True)
class NodeOffer:
    """A node as placement sees it."""

    facts: NodeFacts
    rooms: tuple[GpuRoom, ...]
    """Healthy GPUs with what kubelet has not given out."""
    in_flight: tuple[int, ...] = ()
    """Requests of pods that were released to this node and that its plugin does not report yet."""
    load: Load = field(default_factory=Load)
    """What pods that ask for groups take of it."""
    others: Load = field(default_factory=Load)
    """What other pods took of it when they were counted last, a minute ago perhaps: a hint, no reason to refuse."""
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
    demand: Demand = NO_DEMAND
    has_clusters: bool = True
    """Whether its GPUs have thread-block clusters; also when that is not known."""
    ending: tuple[EndingPod, ...] = ()
    """Pods that are being deleted there and hold groups still."""

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

    @cached_property
    def glance(self) -> Glance:
        """The promised GPUs, sorted for a first look."""
        return Glance.of(self.promised if self.in_flight else self.rooms)

    @cached_property
    def likely(self) -> dict[tuple[int, int, int, bool], Rank | None]:
        """What :func:`_likely_rank` found, by what of a pod it depends on: a cluster's pods ask for few sizes."""
        return {}

    def promising(self, requests: Sequence[int], load: Load) -> "NodeOffer":
        """Return the node with one more pod on its way there."""
        return replace(self, in_flight=(*self.in_flight, *requests), load=self.load + load)

    def amid(self, demand: Demand) -> "NodeOffer":
        """Return the node while pods ask for other things; what was found out about its GPUs stays."""
        other = object.__new__(NodeOffer)  # a tenth of what replace takes, for each node of the cluster
        other.__dict__.update(self.__dict__, demand=demand)
        other.__dict__.pop("likely", None)
        return other

    def rank(self, pod: PodTerms, groups: int, left_over: int, gpus: Collection[GpuUuid]) -> Rank:
        """Return the rank for a pod that leaves ``left_over`` groups on the GPUs that it gets."""
        conflicts = sum(self.demand.disturbed(pod, self.tenants.get(uuid, ())) for uuid in gpus) if pod.pattern else 0
        demand, facts = self.demand, self.facts
        scarcity = demand.scarcity(facts) if demand.insisted else 0
        stranded = demand.stranded(pod, groups, facts, self.load) if demand.asked.groups else 0
        clusterless = pod.needs_clusters and not self.has_clusters
        crowded = self.others.pods > 0 and room_objection(pod, facts, self.load + self.others) is not None
        return (
            2 * crowded + clusterless,
            scarcity,
            stranded,
            left_over,
            conflicts,
            self.glance.free - groups,
            facts.name,
        )


def safe_nodes(pod: PodTerms, requests: Sequence[int], offers: Iterable[NodeOffer]) -> tuple[NodeName, ...]:
    """Return the nodes to release a pod to, best first; none when no node can take it (:func:`refusal` says why).

    ``requests``: groups of each container that asks.
    Most nodes of a large cluster are ranked by a glance at their GPUs, and only the best are judged in full.
    """
    ranked = [(rank, offer) for rank, offer in _likely_ranks(pod, requests, offers) if rank is not None]
    heapq.heapify(ranked)
    chosen: list[NodeName] = []
    while ranked and len(chosen) < MAX_CANDIDATES:
        _, offer = heapq.heappop(ranked)
        if judge(pod, requests, offer).rank is not None:
            chosen.append(offer.facts.name)
    return tuple(chosen)


def _likely_ranks(
    pod: PodTerms, requests: Sequence[int], offers: Iterable[NodeOffer]
) -> Iterator[tuple[Rank | None, NodeOffer]]:
    """Yield the rank that each node has unless something but its GPUs speaks against it; None where they do."""
    if len(requests) > 1 or pod.pattern:
        yield from ((judge(pod, requests, offer).rank, offer) for offer in offers)
        return
    (groups,) = requests
    asked = (groups, pod.cpu_milli, pod.memory_bytes, pod.needs_clusters)
    for offer in offers:
        if offer.closed:
            continue
        known = offer.likely
        if asked in known:
            yield known[asked], offer
            continue
        left_over = offer.glance.left_over(groups)
        rank = None if left_over is None else offer.rank(pod, groups, left_over, ())
        if len(known) < _SIZES_KEPT:
            known[asked] = rank
        yield rank, offer


def refusal(pod: PodTerms, requests: Sequence[int], offers: Iterable[NodeOffer]) -> RequestRefused:
    """Return the error that says why no node can take the pod; call it when that is so.

    :class:`RequestNotAllowed` when no node could ever serve it, :class:`DoesNotFit` when none has room now; the message
    says what is free on each GPU and what would fit.
    """
    judged = [(offer, judge(pod, requests, offer)) for offer in offers]
    verdicts = [verdict for _, verdict in judged]
    able = any(one.ever for one in verdicts if one.has_gpu)
    usable = [offer for offer, verdict in judged if verdict.has_gpu and not offer.closed]
    told = "; ".join((refusal_words(requests, verdicts), *_move_words(requests, usable)))
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
        held = "" if names_objection(pod, offer.facts) else _held_words(offer)
        return Verdict(name, None, f"{why_not}{held}", has_gpu=False)
    if offer.closed:
        return Verdict(name, None, offer.closed)
    try:
        left_over, gpus = _after(offer, requests)
    except RequestRefused as refused:
        return _refused(offer, requests, refused)
    if not every_order_fits(offer.rooms, (*offer.in_flight, *requests)):
        told = f"room is promised to {len(offer.in_flight)} containers on their way; asked again when they have started"
        return Verdict(name, None, told, largest=largest_fit(offer.rooms))
    if sum(requests) > (counted := offer.facts.groups - offer.load.groups):
        told = f"a GPU has room, but kubelet advertises {offer.facts.groups} groups"
        told += f", of which {max(0, counted)} are left" if offer.facts.groups else _NOT_ADVERTISED
        return Verdict(name, None, told, largest=largest_fit(offer.rooms))
    return Verdict(name, offer.rank(pod, sum(requests), left_over, gpus))


def _after(offer: NodeOffer, requests: Sequence[int]) -> tuple[int, list[GpuUuid]]:
    """Return the groups left on the GPUs that the pod gets, and these GPUs."""
    rooms = offer.promised
    left_over, gpus = 0, list[GpuUuid]()
    for groups in requests:
        chosen = choose_gpus(rooms, groups)
        left_over += sum(room.free for room in chosen) - groups
        gpus += (room.uuid for room in chosen)
        rooms = arrive(rooms, groups)
    return left_over, gpus


def _held_words(offer: NodeOffer) -> str:
    """Say what is held on a node that is not heard of: it comes back with the node, whatever was deleted meanwhile."""
    if offer.facts.is_heard_of:
        return ""
    held = sum(room.units.capacity - room.free for room in offer.rooms) + sum(offer.in_flight)
    return f", {held} groups held there" if held else ""


def _refused(offer: NodeOffer, requests: Sequence[int], refused: RequestRefused) -> Verdict:
    rooms = offer.promised
    if isinstance(refused, RequestNotAllowed) and not offer.kept:
        told = "; ".join(filter(None, (_never(rooms, requests), offer.out)))
        return Verdict(offer.facts.name, None, told, ever=False, largest=largest_fit(rooms))
    remarks = (*offer.kept, offer.out, offer.remark, coming_back(offer.ending))
    told = "; ".join(filter(None, (describe_free(rooms), describe_fit(rooms), *remarks)))
    return Verdict(offer.facts.name, None, told, largest=largest_fit(rooms))


def _never(rooms: Sequence[GpuRoom], requests: Sequence[int]) -> str:
    """Say why no GPU there could serve the requests even if it were empty."""
    if not rooms:
        return "no healthy GPU offers groups"
    if all(any(room.units.allows(groups) for room in rooms) for groups in requests):
        there = (f"{len(same)} of {capacity}" for capacity, same in sorted(by_capacity(rooms).items()))
        return f"more than the GPUs there have: {', '.join(there)} groups"
    return f"not allowed there: {'; or '.join(sorted({room.units.allowed() for room in rooms}))}"
