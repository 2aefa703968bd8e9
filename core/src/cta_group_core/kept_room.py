"""Room that is kept for a pod which has waited long: one GPU, or a node where the pod needs several GPUs.

The plugin chooses the GPU of a pod, by best fit, so a single GPU can be kept only where best fit takes it last: the one
with the most free groups. Who is sent to the node then finds room on the others in every order of arrival, and best fit
prefers each of these.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.node_choice import NodeOffer, judge
from cta_group_core.scheduling import PodTerms, objection


@dataclass(frozen=True, slots=True)
class KeptRoom:
    """What is kept, and how many groups it lacks now."""

    node: NodeName
    gpu: GpuUuid | None
    """None: the whole node."""
    lacks: int


def keepable(pod: PodTerms, requests: Sequence[int], offers: Iterable[NodeOffer]) -> tuple[KeptRoom, ...]:
    """Return what could be kept for a pod that finds no room now, that which lacks least first."""
    found = (_on(pod, requests, offer) for offer in offers if not offer.closed)
    return tuple(sorted((one for one in found if one is not None), key=lambda one: (one.lacks, one.node)))


def _on(pod: PodTerms, requests: Sequence[int], offer: NodeOffer) -> KeptRoom | None:
    if not offer.rooms or objection(pod, offer.facts, offer.load) is not None:
        return None
    name, groups = offer.facts.name, sum(requests)
    freest = max(offer.rooms, key=lambda room: (room.free, room.index, room.uuid))
    if len(requests) == 1 and freest.units.allows_on_one(groups):
        # One that is entirely free may be chosen as one of several whole GPUs, where best fit does not decide.
        return KeptRoom(name, None if freest.is_entirely_free else freest.uuid, groups - freest.free)
    if len(requests) == 1 and any(room.units.allows_on_one(groups) for room in offer.rooms):
        return None  # best fit may take another GPU first
    if not judge(pod, requests, offer).ever:
        return None
    return KeptRoom(name, None, groups - sum(room.free for room in offer.rooms))


def without(offer: NodeOffer, kept: KeptRoom, whom: str) -> NodeOffer:
    """Return what is left of a node for others; ``whom`` names the pod that waits."""
    if kept.gpu is None:
        return replace(offer, closed=f"kept for {whom}, which has waited long")
    (room,) = (one for one in offer.rooms if one.uuid == kept.gpu)
    words = f"GPU {room.index} with {room.free} free is kept for {whom}, which has waited long"
    others = tuple(one for one in offer.rooms if one.uuid != kept.gpu)
    return replace(offer, rooms=others, kept=(*offer.kept, words))
