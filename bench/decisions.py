"""What one decision of placement costs in a large cluster: which nodes a pod may be released to."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.node_choice import NodeOffer, refusal, safe_nodes
from cta_group_core.rooms import GpuRoom
from cta_group_core.scheduling import Load, NodeFacts, PodTerms
from cta_group_core.units import GpuUnits
from figures import Figures

_GPUS_OF_A_NODE = 8
_UNITS = GpuUnits(sm_count=132, capacity=128, minimum=8, step=8)
_SIZES = (8, 16, 32, 64, 96, 128, 256)
_TOO_LARGE = 1024
"""Groups of a whole node: with something on every node nothing has room for it."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    offers: Sequence[NodeOffer]
    pods: Sequence[tuple[PodTerms, tuple[int, ...]]]


def decide(figures: Figures, nodes: int, decisions: int, seed: int) -> None:
    """Decide about pods of mixed sizes over nodes that are half full, with pods on their way to a third of them.

    The first decision over a snapshot also computes what is promised on each node; it is told apart.
    """
    chance = random.Random(seed)  # noqa: S311 - a load, no secret
    for begin in range(0, decisions, 100):
        snapshot = _snapshot(nodes, chance, min(100, decisions - begin))
        for number, (terms, requests) in enumerate(snapshot.pods):
            since, processor_since = time.perf_counter(), time.thread_time()
            found = safe_nodes(terms, requests, snapshot.offers)
            taken, processor = time.perf_counter() - since, time.thread_time() - processor_since
            name = "placement_decision" if number else "placement_first_decision"
            figures.add(f"{name}_ms", taken * 1000)
            figures.add(f"{name}_cpu_ms", processor * 1000)
            if not found:
                raise AssertionError(f"nothing has room for {requests}")
        since = time.thread_time()
        words = refusal(PodTerms(), (_TOO_LARGE,), snapshot.offers)
        figures.add("placement_refusal_words_cpu_ms", (time.thread_time() - since) * 1000)
        if str(_TOO_LARGE) not in str(words):
            raise AssertionError(words)


def _snapshot(nodes: int, chance: random.Random, pods: int) -> _Snapshot:
    offers = [_offer(number, chance) for number in range(nodes)]
    return _Snapshot(offers, [(PodTerms(), (chance.choice(_SIZES),)) for _ in range(pods)])


def _offer(number: int, chance: random.Random) -> NodeOffer:
    name = NodeName(f"node-{number:04}")
    free = [chance.choice((0, 0, 8, 24, 32, 64, 96, 128)) for _ in range(_GPUS_OF_A_NODE)]
    free[0] = min(free[0], 120)  # nowhere is a whole node free
    rooms = tuple(GpuRoom(GpuUuid(f"GPU-{name}-{index}"), index, _UNITS, room) for index, room in enumerate(free))
    groups = _UNITS.capacity * _GPUS_OF_A_NODE
    in_flight = (8, 16)[: chance.randrange(3)] if chance.random() < 0.5 and sum(free) >= 64 else ()  # noqa: PLR2004
    facts = NodeFacts(name, cpu_milli=192_000, memory_bytes=2**40, pods=250, groups=groups)
    return NodeOffer(facts, rooms, in_flight, Load(pods=10, groups=groups - sum(free)))
