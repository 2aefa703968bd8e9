"""Which GPU of a node serves a request: the one rule that the plugin applies and the operator plans with.

A request that one GPU here could serve goes to one GPU: the one with the fewest free groups that still has room (best
fit; ties by index, then UUID). Several GPUs only as whole, entirely free GPUs of one capacity, those that are connected
best. Anything else is refused in words that say what was asked, what is free on each GPU and what would fit. Where the
policy is strict-uniform, a GPU has room for shares of the one size that it serves already.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from cta_group_core.errors import DoesNotFit, RequestNotAllowed
from cta_group_core.ids import GpuUuid, GroupId, by_gpu
from cta_group_core.links import NO_LINKS, GpuLinks, best_connected
from cta_group_core.rooms import GpuRoom, SharePolicy, by_capacity, describe_fit, describe_free, largest_fit
from cta_group_core.units import GpuUnits

__all__ = ["GpuRoom", "SharePolicy", "check_ids", "choose_gpus", "choose_ids", "largest_fit"]


def choose_gpus(
    rooms: Sequence[GpuRoom], groups: int, *, holding: Collection[GpuUuid] = (), links: GpuLinks = NO_LINKS
) -> tuple[GpuRoom, ...]:
    """Return the GPU that serves ``groups``, or the several whole GPUs, in order of index.

    ``holding`` names GPUs that must be part of the answer, because the container already has groups there. ``links``
    decide between whole GPUs only; whoever plans for a node need not know them, since any of them leave the same room.
    Raises :class:`RequestNotAllowed` when no GPU here could serve it even if it were empty, and
    :class:`DoesNotFit` when one could but has no room now.
    """
    allowed = _allowed_on(rooms, groups)
    alone = [room for room in allowed if groups <= room.units.capacity]
    chosen = _one_gpu(alone, groups, holding) if alone else _whole_gpus(allowed, groups, holding, links)
    if not chosen:
        lacking = "no GPU has room" if alone else "too few whole GPUs are free"
        raise DoesNotFit(f"asked for {groups} groups, but {lacking}: {_told(rooms)}")
    if missing := sorted(set(holding) - {room.uuid for room in chosen}):
        raise DoesNotFit(
            f"asked for {groups} groups together with those that an init container holds on {', '.join(missing)}, "
            f"but that leads to no GPU with room: {_told(rooms)}"
        )
    return chosen


def _told(rooms: Sequence[GpuRoom]) -> str:
    return f"{describe_free(rooms)}; {describe_fit(rooms)}"


def _allowed_on(rooms: Sequence[GpuRoom], groups: int) -> list[GpuRoom]:
    """Return the GPUs that could serve ``groups`` if they were empty, or raise the reason none could."""
    allowed = [room for room in rooms if room.units.allows(groups)]
    if not allowed:
        raise RequestNotAllowed(_not_allowed(rooms, groups))
    enough = any(groups <= len(same) * capacity for capacity, same in by_capacity(allowed).items())
    if not enough:
        raise RequestNotAllowed(f"asked for {groups} groups, more than the GPUs here have: {_told(rooms)}")
    return allowed


def _not_allowed(rooms: Sequence[GpuRoom], groups: int) -> str:
    if not rooms:
        return f"asked for {groups} groups, but this node has no GPU that offers any"
    kinds = "; or ".join(sorted({room.units.allowed() for room in rooms}))
    return f"asked for {groups} groups, which no GPU here allows: {kinds}; {_told(rooms)}"


def _one_gpu(alone: Iterable[GpuRoom], groups: int, holding: Collection[GpuUuid]) -> tuple[GpuRoom, ...]:
    fitting = (room for room in alone if room.takes(groups))
    best = min(fitting, key=lambda room: (room.uuid not in holding, *_best_fit_order(room)), default=None)
    return (best,) if best else ()


def _best_fit_order(room: GpuRoom) -> tuple[int, int, str]:
    return (room.free, room.index, room.uuid)


def _whole_gpus(
    allowed: Iterable[GpuRoom], groups: int, holding: Collection[GpuUuid], links: GpuLinks
) -> tuple[GpuRoom, ...]:
    """Return entirely free GPUs of one capacity that make up ``groups``, the fewest GPUs that do."""
    choices: list[tuple[GpuRoom, ...]] = []
    for capacity, free in by_capacity(room for room in allowed if room.is_entirely_free).items():
        needed = groups // capacity
        if len(free) >= needed:
            rooms = {room.uuid: room for room in sorted(free, key=_best_fit_order)}
            chosen = best_connected(list(rooms), needed, links, holding=holding)
            choices.append(tuple(rooms[uuid] for uuid in chosen))
    return min(choices, key=lambda gpus: (_left_out(gpus, holding), len(gpus)), default=())


def _left_out(gpus: Sequence[GpuRoom], holding: Collection[GpuUuid]) -> int:
    return len(set(holding) - {room.uuid for room in gpus})


def choose_ids(
    units_by_gpu: Mapping[GpuUuid, tuple[int, GpuUnits]],
    *,
    available: Collection[GroupId],
    must_include: Collection[GroupId],
    groups: int,
    shares: Mapping[GpuUuid, frozenset[int]] | None = None,
    links: GpuLinks = NO_LINKS,
) -> tuple[GroupId, ...]:
    """Return exactly ``groups`` ids out of ``available``, all of one GPU or of whole GPUs, in ascending order.

    ``units_by_gpu`` holds index and units of each healthy GPU; ids of other GPUs, or beyond a GPU's capacity, are
    never chosen. ``must_include`` are ids that kubelet reuses from the pod's init containers; they are part of the
    answer and decide the GPU. A list that is shorter than asked is never returned, since kubelet fills it up at
    random: the refusal is an error instead. ``shares`` holds, where the policy is strict-uniform, the sizes of the
    shares that others hold on each GPU; None: any sizes live together. ``links`` as for :func:`choose_gpus`.
    """
    # Sets of numbers per GPU, and only the chosen GPU's numbers sorted: this runs while kubelet waits.
    free = _numbers(units_by_gpu, available)
    kept = _numbers(units_by_gpu, must_include)
    _check_kept(units_by_gpu, kept, must_include, groups)
    for uuid, numbers in kept.items():
        free.setdefault(uuid, set()).update(numbers)
    rooms = [
        GpuRoom(uuid=uuid, index=index, units=units, free=len(free.get(uuid, ())), shares=_shares_of(uuid, shares))
        for uuid, (index, units) in units_by_gpu.items()
    ]
    ids: list[GroupId] = []
    for room in choose_gpus(rooms, groups, holding=kept, links=links):
        reused = kept.get(room.uuid, set())
        others = sorted(free[room.uuid] - reused)[: min(groups, room.units.capacity) - len(reused)]
        ids += (GroupId(gpu=room.uuid, number=number) for number in sorted([*reused, *others]))
    return tuple(sorted(ids, key=lambda group_id: group_id.gpu))


def _shares_of(gpu: GpuUuid, shares: Mapping[GpuUuid, frozenset[int]] | None) -> frozenset[int] | None:
    return None if shares is None else shares.get(gpu, frozenset())


def _numbers(units_by_gpu: Mapping[GpuUuid, tuple[int, GpuUnits]], ids: Iterable[GroupId]) -> dict[GpuUuid, set[int]]:
    """Sort ids into their GPUs, without those that no GPU here has."""
    capacity = {uuid: units.capacity for uuid, (_, units) in units_by_gpu.items()}
    numbers: defaultdict[GpuUuid, set[int]] = defaultdict(set)
    for group_id in ids:
        if group_id.number < capacity.get(group_id.gpu, 0):
            numbers[group_id.gpu].add(group_id.number)
    return numbers


def _check_kept(
    units_by_gpu: Mapping[GpuUuid, tuple[int, GpuUnits]],
    kept: Mapping[GpuUuid, Collection[int]],
    must_include: Collection[GroupId],
    groups: int,
) -> None:
    """Refuse ids to reuse that are not here now, or that are more than was asked for."""
    for group_id in sorted(must_include):
        if group_id.number not in kept.get(group_id.gpu, ()):
            known = group_id.gpu in units_by_gpu
            why = "this GPU has no such group" if known else "this GPU is not served by this node now"
            raise DoesNotFit(f"asked for {groups} groups that reuse {group_id}, but {why}")
    held = sum(map(len, kept.values()))
    if kept and held > groups:
        raise RequestNotAllowed(f"asked for {groups} groups that reuse {held}; ask for {held} or more")


def check_ids(
    units_by_gpu: Mapping[GpuUuid, GpuUnits],
    ids: Collection[GroupId],
    *,
    shares: Mapping[GpuUuid, frozenset[int]] | None = None,
) -> tuple[GpuUuid, ...]:
    """Return the GPUs that ``ids`` lie on, or raise why no container may get them.

    kubelet may hand out another set than was preferred (reuse, random top-up), so this is asked again before a slice
    is given: every id known and named once, one GPU in an allowed size, or whole GPUs of one capacity only. ``shares``
    as for :func:`choose_ids`.
    """
    chosen = by_gpu(set(ids))
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
        _check_uniform(uuid, len(members), _shares_of(uuid, shares))
        return (uuid,)
    _check_whole_gpus(units_by_gpu, chosen)
    return tuple(chosen)


def _check_uniform(gpu: GpuUuid, groups: int, shares: frozenset[int] | None) -> None:
    if shares is not None and not shares <= {groups}:
        sizes = " and ".join(map(str, sorted(shares)))
        raise DoesNotFit(
            f"{groups} groups on {gpu}, which is shared in {sizes}: with enforcement mode {SharePolicy.STRICT_UNIFORM} "
            "a GPU serves shares of one size at a time"
        )


def _check_whole_gpus(units_by_gpu: Mapping[GpuUuid, GpuUnits], chosen: Mapping[GpuUuid, tuple[GroupId, ...]]) -> None:
    all_whole = all(units_by_gpu[uuid].is_whole(len(members)) for uuid, members in chosen.items())
    if all_whole and len({units_by_gpu[uuid].capacity for uuid in chosen}) == 1:
        return
    spread = ", ".join(f"{len(members)} of {units_by_gpu[uuid].capacity} on {uuid}" for uuid, members in chosen.items())
    raise RequestNotAllowed(
        f"{sum(map(len, chosen.values()))} groups lie on several GPUs ({spread}); "
        "a request must lie on one GPU, or on whole GPUs of one capacity only"
    )
