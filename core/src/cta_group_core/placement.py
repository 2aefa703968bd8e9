"""Which GPU of a node serves a request: the one rule that the plugin applies and the operator plans with.

A request of up to one GPU goes to the GPU with the fewest free groups that still has room (best fit; ties by
index, then UUID). Several GPUs only as whole, entirely free GPUs of one size. Anything else is refused in words
that say what was asked, what is free on each GPU and what would fit.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cta_group_core.errors import DoesNotFit, RequestNotAllowed
from cta_group_core.ids import GpuUuid, GroupId, by_gpu
from cta_group_core.units import GpuUnits


@dataclass(frozen=True, slots=True)
class GpuRoom:
    """One healthy GPU and how much of it is free."""

    uuid: GpuUuid
    index: int
    """NVML's index: a stable order for people and for ties, never an identity."""
    units: GpuUnits
    free: int
    """Groups that nobody holds, 0 to the capacity."""

    @property
    def is_entirely_free(self) -> bool:
        """Tell whether nobody holds anything of this GPU."""
        return self.free == self.units.capacity


def choose_gpus(rooms: Sequence[GpuRoom], groups: int, *, holding: Collection[GpuUuid] = ()) -> tuple[GpuRoom, ...]:
    """Return the GPU that serves ``groups``, or the several whole GPUs, in order of index.

    ``holding`` names GPUs that must be part of the answer, because the container already has groups there.
    Raises :class:`RequestNotAllowed` when no GPU here could serve it even if it were empty, and
    :class:`DoesNotFit` when one could but has no room now.
    """
    candidates = [room for room in _allowed_on(rooms, groups) if room.free >= min(groups, room.units.capacity)]
    chosen = _one_gpu(candidates, groups, holding) or _whole_gpus(candidates, groups, holding)
    if chosen is None:
        raise DoesNotFit(_does_not_fit(rooms, groups))
    if missing := sorted(set(holding) - {room.uuid for room in chosen}):
        raise DoesNotFit(
            f"asked for {groups} groups that reuse those an init container holds on {', '.join(missing)}, "
            f"but they do not lead to one GPU with room: {_inventory(rooms)}"
        )
    return chosen


def _one_gpu(candidates: Iterable[GpuRoom], groups: int, holding: Collection[GpuUuid]) -> tuple[GpuRoom, ...] | None:
    fitting = [room for room in candidates if groups <= room.units.capacity]
    if not fitting:
        return None
    return (min(fitting, key=lambda room: (room.uuid not in holding, *_best_fit_order(room))),)


def _best_fit_order(room: GpuRoom) -> tuple[int, int, str]:
    return (room.free, room.index, room.uuid)


def _allowed_on(rooms: Sequence[GpuRoom], groups: int) -> list[GpuRoom]:
    """Return the GPUs that could serve ``groups`` if they were empty, or raise the reason none could."""
    allowed: list[GpuRoom] = []
    for room in rooms:
        try:
            room.units.check_request(groups)
        except RequestNotAllowed:
            continue
        allowed.append(room)
    if not allowed:
        raise RequestNotAllowed(_not_allowed(rooms, groups))
    if not _enough_gpus_for(allowed, groups):
        raise RequestNotAllowed(f"asked for {groups} groups, but there are not enough GPUs here: {_inventory(rooms)}")
    return allowed


def _enough_gpus_for(allowed: Sequence[GpuRoom], groups: int) -> bool:
    if any(groups <= room.units.capacity for room in allowed):
        return True
    return any(len(same) * capacity >= groups for capacity, same in _by_capacity(allowed).items())


def _whole_gpus(candidates: Iterable[GpuRoom], groups: int, holding: Collection[GpuUuid]) -> tuple[GpuRoom, ...] | None:
    """Return entirely free GPUs of one capacity that make up ``groups``, the fewest GPUs that do."""
    free_by_capacity = _by_capacity(room for room in candidates if room.is_entirely_free)
    for capacity, free in sorted(free_by_capacity.items(), reverse=True):
        needed, rest = divmod(groups, capacity)
        if not rest and len(free) >= needed:
            first = sorted(free, key=lambda room: (room.uuid not in holding, *_best_fit_order(room)))[:needed]
            return tuple(sorted(first, key=_best_fit_order))
    return None


def _by_capacity(rooms: Iterable[GpuRoom]) -> dict[int, list[GpuRoom]]:
    same: dict[int, list[GpuRoom]] = {}
    for room in rooms:
        same.setdefault(room.units.capacity, []).append(room)
    return same


def largest_fit(rooms: Iterable[GpuRoom]) -> int:
    """Return the largest request on one GPU that fits now, in groups; 0 when nothing does."""
    return max((_largest_on(room) for room in rooms), default=0)


def _largest_on(room: GpuRoom) -> int:
    if room.is_entirely_free:
        return room.units.capacity
    fitting = room.free - room.free % room.units.step
    return fitting if fitting >= room.units.minimum else 0


def _not_allowed(rooms: Sequence[GpuRoom], groups: int) -> str:
    kinds = sorted({room.units.allowed() for room in rooms})
    if not kinds:
        return f"asked for {groups} groups, but this node has no GPU that offers any"
    return f"asked for {groups} groups, which no GPU here allows: {'; or '.join(kinds)}"


def _does_not_fit(rooms: Sequence[GpuRoom], groups: int) -> str:
    largest = largest_fit(rooms)
    fits = f"the largest request that fits now is {largest}" if largest else "nothing fits now"
    return f"asked for {groups} groups, but no GPU has room: {_inventory(rooms)}; {fits}"


def _inventory(rooms: Sequence[GpuRoom]) -> str:
    """Say what is free on each GPU, runs of equal neighbours in one phrase."""
    ordered = sorted(rooms, key=lambda room: (room.index, room.uuid))
    phrases: list[str] = []
    start = 0
    for position, room in enumerate(ordered):
        last = position + 1 == len(ordered)
        if last or _kind(ordered[position + 1]) != _kind(room):
            phrases.append(_phrase(ordered[start], room))
            start = position + 1
    return "free per GPU: " + ", ".join(phrases) if phrases else "no GPU"


def _kind(room: GpuRoom) -> tuple[int, int]:
    return (room.free, room.units.capacity)


def _phrase(first: GpuRoom, last: GpuRoom) -> str:
    indices = f"{first.index}" if first.index == last.index else f"{first.index}-{last.index}"
    each = "" if first.index == last.index else " each"
    return f"GPU {indices}: {first.free} of {first.units.capacity}{each}"


def choose_ids(
    units_by_gpu: Mapping[GpuUuid, tuple[int, GpuUnits]],
    *,
    available: Collection[GroupId],
    must_include: Collection[GroupId],
    groups: int,
) -> tuple[GroupId, ...]:
    """Return exactly ``groups`` ids out of ``available``, all of one GPU or of whole GPUs, in ascending order.

    ``units_by_gpu`` holds index and units of each healthy GPU. ``must_include`` are ids that kubelet reuses from the
    pod's init containers; they are part of the answer and decide the GPU. A list that is shorter than asked is never
    returned, since kubelet fills it up at random: the refusal is an error instead.
    """
    free_by_gpu = by_gpu(set(available) | set(must_include))
    kept_by_gpu = by_gpu(must_include)
    rooms = [
        GpuRoom(uuid=uuid, index=index, units=units, free=len(free_by_gpu.get(uuid, ())))
        for uuid, (index, units) in units_by_gpu.items()
    ]
    chosen = choose_gpus(rooms, groups, holding=kept_by_gpu)
    ids: list[GroupId] = []
    for room in chosen:
        kept = kept_by_gpu.get(room.uuid, ())
        others = [group_id for group_id in free_by_gpu[room.uuid] if group_id not in kept]
        ids += [*kept, *others][: min(groups, room.units.capacity)]
    return tuple(sorted(ids))


def check_ids(units_by_gpu: Mapping[GpuUuid, GpuUnits], ids: Collection[GroupId]) -> tuple[GpuUuid, ...]:
    """Return the GPUs that ``ids`` lie on, or raise why no container may get them.

    kubelet may hand out another set than was preferred (reuse, random top-up), so this is asked again before a slice
    is given: every id known, one GPU in an allowed size, or whole GPUs only.
    """
    chosen = by_gpu(ids)
    for uuid, members in chosen.items():
        if uuid not in units_by_gpu:
            raise DoesNotFit(f"{members[0]}: GPU {uuid} is not served by this node now")
        capacity = units_by_gpu[uuid].capacity
        if members[-1].number >= capacity:
            raise RequestNotAllowed(f"{members[-1]}: this GPU has groups 0 to {capacity - 1}")
    if not chosen:
        raise RequestNotAllowed("no device id was given; at least one is needed")
    if len(chosen) == 1:
        ((uuid, members),) = chosen.items()
        units_by_gpu[uuid].check_fraction(len(members))
        return (uuid,)
    _check_all_whole(units_by_gpu, chosen)
    return tuple(chosen)


def _check_all_whole(units_by_gpu: Mapping[GpuUuid, GpuUnits], chosen: Mapping[GpuUuid, tuple[GroupId, ...]]) -> None:
    if all(units_by_gpu[uuid].is_whole(len(members)) for uuid, members in chosen.items()):
        return
    spread = ", ".join(f"{len(members)} of {units_by_gpu[uuid].capacity} on {uuid}" for uuid, members in chosen.items())
    raise RequestNotAllowed(
        f"{sum(map(len, chosen.values()))} groups lie on several GPUs ({spread}); "
        "a request must lie on one GPU, or on whole GPUs only"
    )
