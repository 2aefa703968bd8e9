"""Whether pods that are on their way to a node all find room there, whichever of them arrives first.

Between its release and its start a pod is bound to a node but not to a GPU; the plugin chooses the GPU when kubelet
asks, by best fit, and several pods may ask in any order. An order can waste room that another order needs, so a promise
is made only when **every** order ends well. A pod that never arrives is covered: every beginning of every order fits.
"""

from collections.abc import Sequence

from cta_group_core.errors import RequestRefused
from cta_group_core.placement import choose_gpus
from cta_group_core.rooms import GpuRoom

MAX_STEPS = 512
"""Placements tried before the answer is "not proven". Equal requests and equal states are tried once, so that this is
reached only by many different sizes at once; they are asked about again when some have arrived."""


def arrive(rooms: Sequence[GpuRoom], groups: int) -> tuple[GpuRoom, ...]:
    """Return the rooms after one request was served by best fit, or raise what the plugin would."""
    taken = {room.uuid: min(groups, room.units.capacity) for room in choose_gpus(rooms, groups)}
    return tuple(room.after(taken[room.uuid]) if room.uuid in taken else room for room in rooms)


def every_order_fits(rooms: Sequence[GpuRoom], requests: Sequence[int], *, max_steps: int = MAX_STEPS) -> bool:
    """Tell whether ``requests`` all fit in every order of arrival. False when ``max_steps`` do not suffice to tell."""
    return has_room_for_any_order(rooms, requests) or _tried_every_order(rooms, requests, max_steps)


def has_room_for_any_order(rooms: Sequence[GpuRoom], requests: Sequence[int]) -> bool:
    """Tell whether so much is free that no order can fail; False says nothing.

    A request of s groups fails only when each GPU that has s free now is left with less, which is at most s less one
    step. The other requests together cannot do that when they take fewer groups than would have to be taken. Holds for
    GPUs of one kind that take any size, and requests that each fit on one of them.
    """
    if not rooms or any(room.units != rooms[0].units or room.shares is not None for room in rooms):
        return False
    units, total = rooms[0].units, sum(requests)
    for groups in set(requests):
        able = [room.free for room in rooms if room.free >= groups]
        if not units.allows_on_one(groups) or sum(able) - (total - groups) <= len(able) * (groups - units.step):
            return False
    return True


def _tried_every_order(rooms: Sequence[GpuRoom], requests: Sequence[int], max_steps: int) -> bool:
    seen: set[tuple[tuple[tuple[int, frozenset[int] | None], ...], tuple[int, ...]]] = set()
    stack = [(tuple(rooms), tuple(sorted(requests)))]
    steps = 0
    while stack:
        here, left = stack.pop()
        for place, groups in enumerate(left):
            if place and left[place - 1] == groups:
                continue
            steps += 1
            try:
                after = arrive(here, groups)
            except RequestRefused:
                return False
            if steps > max_steps:
                return False
            rest = (*left[:place], *left[place + 1 :])
            state = (tuple((room.free, room.shares) for room in after), rest)
            if state not in seen:
                seen.add(state)
                stack.append((after, rest))
    return True
