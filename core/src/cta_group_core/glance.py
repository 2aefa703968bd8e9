"""The rule of placement at a glance: what a request would leave on the GPUs that it would get, without choosing them.

A decision looks at every node of the cluster, and most of them only so far. What is looked up is sorted once for each
state of a node; the answer is always that of :func:`cta_group_core.placement.choose_gpus`.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, Self

from cta_group_core.rooms import GpuRoom
from cta_group_core.units import GpuUnits


class _Kind(NamedTuple):
    """GPUs of one kind on a node."""

    units: GpuUnits
    free: tuple[int, ...]
    """Of those that take any size, ascending."""
    shared: tuple[GpuRoom, ...]
    """Those that take one size only."""
    whole: int
    """How many are entirely free."""

    def least(self, groups: int) -> int | None:
        """Return the free groups of the fullest GPU that takes the request."""
        place = bisect_left(self.free, groups)
        least = self.free[place] if place < len(self.free) else None
        if not self.shared:
            return least
        found = [room.free for room in self.shared if room.takes(groups)]
        return min(found if least is None else [*found, least], default=None)


class Glance(NamedTuple):
    """The GPUs of one node. Numbers in groups. Tuples, since thousands are made in each round."""

    free: int
    """On all of them together."""
    kinds: tuple[_Kind, ...]

    @classmethod
    def of(cls, rooms: Sequence[GpuRoom]) -> Self:
        """Sort the GPUs. This runs for each node of the cluster in each round, and most nodes have GPUs of one kind."""
        alike = [room.units for room in rooms if room.shares is None]
        if alike and alike.count(alike[0]) == len(rooms):
            free = sorted([room.free for room in rooms])
            return cls(sum(free), (_Kind(alike[0], tuple(free), (), free.count(alike[0].capacity)),))
        by_units: dict[GpuUnits, list[GpuRoom]] = {}
        for room in rooms:
            by_units.setdefault(room.units, []).append(room)
        kinds = tuple(
            _Kind(
                units,
                tuple(sorted(room.free for room in same if room.shares is None)),
                tuple(room for room in same if room.shares is not None),
                sum(room.is_entirely_free for room in same),
            )
            for units, same in by_units.items()
        )
        return cls(sum(room.free for room in rooms), kinds)

    def left_over(self, groups: int) -> int | None:
        """Return what one container's request would leave on its GPU; 0 for whole ones, None when it finds no room."""
        if len(self.kinds) == 1 and groups <= self.kinds[0].units.capacity:  # what most nodes and requests are
            (kind,) = self.kinds
            least = kind.least(groups) if kind.units.allows_on_one(groups) else None
            return None if least is None else least - groups
        allowed = [kind for kind in self.kinds if kind.units.allows(groups)]
        alone = [kind for kind in allowed if groups <= kind.units.capacity]
        if alone:
            fits = [least for kind in alone if (least := kind.least(groups)) is not None]
            return min(fits) - groups if fits else None
        whole: dict[int, int] = {}
        for kind in allowed:
            whole[kind.units.capacity] = whole.get(kind.units.capacity, 0) + kind.whole
        return 0 if any(count >= groups // capacity for capacity, count in whole.items()) else None
