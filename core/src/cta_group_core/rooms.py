"""How much room the GPUs of a node have now, and the words for it.

Every refusal of a request says what was asked, what is free on each GPU and what would fit; the last two are said
here, so that pod events, ``kubectl cta explain`` and the command line use the same words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from cta_group_core.errors import ContradictoryGpu
from cta_group_core.ids import GpuUuid
from cta_group_core.units import GpuUnits


class SharePolicy(StrEnum):
    """Which shares may be on one GPU at the same time. The words are those of CTANode's ``enforcement.mode``."""

    COOPERATIVE = "cooperative"
    """Any. The driver holds every client to the largest of them, and to its own only as long as it wants to be held."""
    STRICT_UNIFORM = "strict-uniform"
    """Shares of one size, so that the largest is each one's own and nobody can get more."""


@dataclass(frozen=True, slots=True)
class GpuRoom:
    """One healthy GPU and how much of it is free."""

    uuid: GpuUuid
    index: int
    """NVML's index: a stable order for people and for ties, never an identity."""
    units: GpuUnits
    free: int
    """Groups that nobody holds, 0 to the capacity; anything else raises :class:`ContradictoryGpu`."""
    shares: frozenset[int] | None = None
    """Sizes of the shares that are held, and only their like joins them (strict-uniform). None: any size does."""

    def __post_init__(self) -> None:
        if not 0 <= self.free <= self.units.capacity:
            raise ContradictoryGpu(f"{self.uuid}: {self.free} groups cannot be free of {self.units.capacity}")

    @property
    def is_entirely_free(self) -> bool:
        """Tell whether nobody holds anything of this GPU."""
        return self.free == self.units.capacity

    def takes(self, groups: int) -> bool:
        """Tell whether a share of ``groups`` has room here now; whether its size is allowed is another matter."""
        return self.free >= groups and (self.shares is None or self.shares <= {groups})

    def after(self, groups: int) -> Self:
        """Return the room when a share of ``groups`` has come."""
        shares = None if self.shares is None else self.shares | {groups}
        return replace(self, free=self.free - groups, shares=shares)

    @property
    def largest(self) -> int:
        """The largest share that has room here now, in groups; 0 when none has."""
        if self.shares:
            (only, *others) = self.shares
            return only if not others and self.takes(only) else 0
        fitting = self.free - self.free % self.units.step
        return fitting if fitting >= self.units.minimum else 0


def by_capacity(rooms: Iterable[GpuRoom]) -> dict[int, list[GpuRoom]]:
    """Sort GPUs by their capacity, which is what makes them equal to a request of several whole ones."""
    same: dict[int, list[GpuRoom]] = {}
    for room in rooms:
        same.setdefault(room.units.capacity, []).append(room)
    return same


def largest_fit(rooms: Iterable[GpuRoom]) -> int:
    """Return the largest request on one GPU that fits now, in groups; 0 when nothing does."""
    return max((room.largest for room in rooms), default=0)


def describe_free(rooms: Sequence[GpuRoom]) -> str:
    """Say what is free on each GPU; neighbours with the same numbers are told in one phrase."""
    ordered = sorted(rooms, key=lambda room: (room.index, room.uuid))
    if not ordered:
        return "no GPU here offers groups"
    runs = [[ordered[0]]]
    for room in ordered[1:]:
        if _continues(runs[-1][-1], room):
            runs[-1].append(room)
        else:
            runs.append([room])
    return "free per GPU: " + ", ".join(_phrase(run[0], run[-1]) for run in runs)


def _continues(before: GpuRoom, room: GpuRoom) -> bool:
    same = (before.free, before.units.capacity, before.shares) == (room.free, room.units.capacity, room.shares)
    return same and room.index == before.index + 1


def _phrase(first: GpuRoom, last: GpuRoom) -> str:
    sizes = " and ".join(map(str, sorted(first.shares or ())))
    numbers = f"{first.free} of {first.units.capacity}" + (f" (shared in {sizes})" if sizes else "")
    if first is last:
        return f"GPU {first.index}: {numbers}"
    return f"GPU {first.index}-{last.index}: {numbers} each"


def describe_fit(rooms: Sequence[GpuRoom]) -> str:
    """Say the largest request that fits now, on one GPU and on several whole ones."""
    largest = largest_fit(rooms)
    if not largest:
        return "nothing fits now"
    free_by_capacity = by_capacity(room for room in rooms if room.is_entirely_free)
    whole = max(((len(free) * capacity, len(free)) for capacity, free in free_by_capacity.items()), default=(0, 0))
    several = f", or {whole[0]} as {whole[1]} whole GPUs" if whole[1] > 1 else ""
    return f"the largest request that fits now is {largest} on one GPU{several}"
