"""Whose turn it is among waiting pods: the more important first, nobody behind for ever, no large one starved by small.

**Order.** Among pods of one priority the older goes first. A pod of a lower priority goes as if it had been created
:data:`AGING_SECONDS` later for each higher priority that waits too, at most :data:`STEPS_MOST` of them. So an
important pod overtakes those that came shortly before it, and only finitely many can ever overtake one pod.

**Keeping room.** Small pods take whatever comes free before it is enough for a large one. So for a pod that has waited
for :data:`KEEP_AFTER_SECONDS` without finding room, one GPU is kept: nobody behind it is sent there. It is the GPU that
lacks least, the next best after :data:`KEEP_SECONDS`, since those who hold it may never end. When all have had their
turn nothing is kept for as long, so that a pod which never gets room does not keep it from others for ever. At most
:data:`KEPT_MOST` pods have a GPU kept at a time, the first in the order.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

Item = TypeVar("Item")

AGING_SECONDS: Final = 600.0
STEPS_MOST: Final = 6
KEEP_AFTER_SECONDS: Final = 300.0
KEEP_SECONDS: Final = 600.0
KEPT_MOST: Final = 3


def in_turn(
    waiting: Iterable[Item], *, priority: Callable[[Item], int], created: Callable[[Item], float]
) -> list[Item]:
    """Return who waits, next first. ``created``: in seconds of any clock. Who came equal in both keeps its place."""
    items = list(waiting)
    levels = sorted({priority(item) for item in items}, reverse=True)
    steps = {level: min(above, STEPS_MOST) for above, level in enumerate(levels)}

    def due(item: Item) -> tuple[float, int]:
        return created(item) + AGING_SECONDS * steps[priority(item)], -priority(item)

    return sorted(items, key=due)


def may_keep(waited_seconds: float) -> bool:
    """Tell whether a pod that finds no room has waited so long that room is kept for it."""
    return waited_seconds >= KEEP_AFTER_SECONDS


def turn_left_seconds(waited_seconds: float) -> float:
    """Return when :func:`kept_one` says something else of a pod for which room may be kept: above 0 seconds."""
    return KEEP_SECONDS - (waited_seconds - KEEP_AFTER_SECONDS) % KEEP_SECONDS


def kept_one(candidates: Sequence[Item], waited_seconds: float) -> Item | None:
    """Return which of several is kept, the best first, for a pod that has waited so long; None when nothing is."""
    turn = int((waited_seconds - KEEP_AFTER_SECONDS) // KEEP_SECONDS) % (len(candidates) + 1)
    return candidates[turn] if turn < len(candidates) else None
