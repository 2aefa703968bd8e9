"""How much room the GPUs of a node have now, and the words for it.

Every refusal of a request says what was asked, what is free on each GPU and what would fit; the last two are said
here, so that pod events, ``kubectl cta explain`` and the command line use the same words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cta_group_core.errors import ContradictoryGpu
from cta_group_core.ids import GpuUuid
from cta_group_core.units import GpuUnits


@dataclass(frozen=True, slots=True)
class GpuRoom:
    """One healthy GPU and how much of it is free."""

    uuid: GpuUuid
    index: int
    """NVML's index: a stable order for people and for ties, never an identity."""
    units: GpuUnits
    free: int
    """Groups that nobody holds, 0 to the capacity; anything else raises :class:`ContradictoryGpu`."""

    def __post_init__(self) -> None:
        if not 0 <= self.free <= self.units.capacity:
            raise ContradictoryGpu(f"{self.uuid}: {self.free} groups cannot be free of {self.units.capacity}")

    @property
    def is_entirely_free(self) -> bool:
        """Tell whether nobody holds anything of this GPU."""
        return self.free == self.units.capacity


def by_capacity(rooms: Iterable[GpuRoom]) -> dict[int, list[GpuRoom]]:
    """Sort GPUs by their capacity, which is what makes them equal to a request of several whole ones."""
    same: dict[int, list[GpuRoom]] = {}
    for room in rooms:
        same.setdefault(room.units.capacity, []).append(room)
    return same


def largest_fit(rooms: Iterable[GpuRoom]) -> int:
    """Return the largest request on one GPU that fits now, in groups; 0 when nothing does."""
    return max((_largest_on(room) for room in rooms), default=0)


def _largest_on(room: GpuRoom) -> int:
    fitting = room.free - room.free % room.units.step
    return fitting if fitting >= room.units.minimum else 0


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
    same = (before.free, before.units.capacity) == (room.free, room.units.capacity)
    return same and room.index == before.index + 1


def _phrase(first: GpuRoom, last: GpuRoom) -> str:
    numbers = f"{first.free} of {first.units.capacity}"
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
