"""How close the GPUs of a node are to each other, and which of them go together best. Pure.

A request of several whole GPUs is one program that moves data between them. Over NVLink that is several times as fast
as over PCIe; below one PCIe switch it does not pass the processor; on one NUMA node it does not pass the link between
two processors.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import combinations
from math import comb
from typing import Final

from cta_group_core.ids import GpuUuid


class Closeness(IntEnum):
    """What lies between two GPUs; more is closer."""

    FAR = 0
    """The link between two processors, or nobody knows."""
    NUMA = 1
    """PCIe of one NUMA node."""
    SWITCH = 2
    """PCIe switches only."""
    NVLINK = 3
    """NVLink, directly or over NVSwitch."""


@dataclass(frozen=True, slots=True)
class GpuLinks:
    """The pairs of a node's GPUs that are closer than far."""

    pairs: Mapping[frozenset[GpuUuid], Closeness] = field(default_factory=dict)

    def between(self, one: GpuUuid, other: GpuUuid) -> Closeness:
        """Return how close two GPUs are."""
        return self.pairs.get(frozenset((one, other)), Closeness.FAR)


NO_LINKS: Final = GpuLinks()
"""Nothing is known, so no GPU is preferred to another."""

_WEIGHT: Final = {Closeness.FAR: 0, Closeness.NUMA: 1, Closeness.SWITCH: 1 << 10, Closeness.NVLINK: 1 << 20}
"""One closer pair is worth more than all pairs of the next kind; 64 GPUs have 2016."""
_MOST_PAIRS_LOOKED_AT: Final = 1000
"""Up to here every choice is looked at, in some 0.2 ms: kubelet waits for the answer."""
_MOST_SEEDS: Final = 16


def best_connected(
    gpus: Sequence[GpuUuid], count: int, links: GpuLinks, *, holding: Collection[GpuUuid] = ()
) -> tuple[GpuUuid, ...]:
    """Return the ``count`` of ``gpus`` that go together best, in the order of ``gpus``; those of ``holding`` first.

    The best have the most pairs by NVLink, then the most below one switch, then the most on one NUMA node. Of several
    the one that takes the fewest close pairs from those that are left, then the first in order. With more than eight
    GPUs not every choice may be looked at, but the best that can be grown from each GPU; it is never worse than the
    first in order.
    """
    fixed = [index for index, gpu in enumerate(gpus) if gpu in holding][:count]
    weights = _weights(gpus, links)
    if len(gpus) <= count or not any(map(any, weights)):
        others = (index for index in range(len(gpus)) if index not in fixed)
        return tuple(gpus[index] for index in sorted([*fixed, *others][:count]))
    degrees = [sum(row) for row in weights]
    chosen = max(_choices(weights, fixed, count), key=lambda choice: _worth(weights, degrees, choice))
    return tuple(gpus[index] for index in chosen)


def _weights(gpus: Sequence[GpuUuid], links: GpuLinks) -> list[list[int]]:
    place = {gpu: index for index, gpu in enumerate(gpus)}
    weights = [[0] * len(gpus) for _ in gpus]
    for (one, other), closeness in links.pairs.items():
        if one in place and other in place:
            weights[place[one]][place[other]] = weights[place[other]][place[one]] = _WEIGHT[closeness]
    return weights


def _choices(weights: Sequence[Sequence[int]], fixed: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    """Yield what is looked at, each in ascending order, earlier ones first."""
    others = [index for index in range(len(weights)) if index not in fixed]
    free = count - len(fixed)
    if comb(len(others), free) * comb(count, 2) <= _MOST_PAIRS_LOOKED_AT:
        yield from (tuple(sorted([*fixed, *rest])) for rest in combinations(others, free))
        return
    yield tuple(sorted([*fixed, *others[:free]]))
    for seed in others[:_MOST_SEEDS]:
        yield _grown(weights, [*fixed, seed], others, count)


def _grown(
    weights: Sequence[Sequence[int]], seeds: Sequence[int], others: Sequence[int], count: int
) -> tuple[int, ...]:
    """Add the GPU that is closest to those chosen, again and again; of several the one that has the fewest others."""
    chosen = list(seeds)
    gain = [sum(row[seed] for seed in seeds) for row in weights]
    degree = [sum(row) for row in weights]
    left = [index for index in others if index not in seeds]
    while len(chosen) < count:
        best = max(left, key=lambda index: (gain[index], -degree[index], -index))
        left.remove(best)
        chosen.append(best)
        for index in left:
            gain[index] += weights[index][best]
    return tuple(sorted(chosen))


def _worth(weights: Sequence[Sequence[int]], degrees: Sequence[int], chosen: Sequence[int]) -> tuple[int, int]:
    """Return what the pairs inside are worth, and, negative, what all pairs with one of them are."""
    inside = sum(weights[one][other] for one, other in combinations(chosen, 2))
    return inside, -sum(degrees[one] for one in chosen)
