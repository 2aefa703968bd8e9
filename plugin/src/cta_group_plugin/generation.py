"""From when on this process decides over the MPS daemons, while another one of ours may still run beside it."""

import time
from collections.abc import Callable


def ns_since_boot() -> int:
    """Return nanoseconds of the clock that all processes of a node share."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Generations:
    """Counts anew each time that kubelet turns to this process.

    A generation begins with the first account that was asked for after that: the process of before may have given out
    groups until then, and demands without them would lower their limits.
    """

    def __init__(self, boot_clock: Callable[[], int] = ns_since_boot) -> None:
        self._boot_clock = boot_clock
        self._turned_at = float("inf")
        self._next = 0
        self.current = 0
        """Nanoseconds since boot of the turn that counts; 0 before the first."""

    def turn(self, now: float) -> None:
        """Note that kubelet has turned to this process, at ``now`` on the clock of :meth:`settle`."""
        self._turned_at, self._next = now, self._boot_clock()

    def settle(self, asked_at: float) -> int:
        """Note an account that was asked for at ``asked_at``, and return the generation."""
        if asked_at >= self._turned_at:
            self._turned_at, self.current = float("inf"), self._next
        return self.current
