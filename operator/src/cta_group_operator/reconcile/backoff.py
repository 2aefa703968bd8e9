"""How long to wait before something that failed is tried again."""

from typing import Final

_DOUBLINGS_MOST: Final = 10
"""So that numbers stay small however long something fails."""


def waited(count: int, shortest: float, longest: float) -> float:
    """Return the seconds after the ``count``-th failure in a row: twice as many each time, ``longest`` at most."""
    growth: int = 2 ** min(count - 1, _DOUBLINGS_MOST)
    return min(longest, shortest * growth)
