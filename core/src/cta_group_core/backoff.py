"""How long to wait before something that failed is tried again."""

from typing import Final

_STEPS_MOST: Final = 16
"""So that numbers stay small however long something fails."""


def wait_seconds(failures: int, first: float, longest: float, *, growth: int = 2) -> float:
    """Return the wait after failures in a row: ``first``, then ``growth`` times as long each, ``longest`` at most."""
    return min(longest, first * float(growth ** min(failures - 1, _STEPS_MOST)))
