"""Notices that a part of the operator does nothing any more while its process lives, so that liveness can fail.

What counts is whether a part acts, not whether it succeeds: an API server that is away, slow, or refuses, is no reason
to start the operator anew, which would not help and would end admission too. An event loop that stands still answers no
probe at all.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

WATCH_SECONDS: Final = 180.0
"""A watch asks anew at least every 45 s, and a question is given up after 20 s."""
QUOTAS_SECONDS: Final = 600.0
"""CTAQuotas are listed every 300 s."""
QUEUE_SECONDS: Final = 120.0
"""A round is a few calls, each given up after 20 s."""
ADMISSION_SECONDS: Final = 30.0
"""Its thread does something each second; it answers a question within milliseconds."""
LEASE_SECONDS: Final = 60.0
"""The lease is asked for every second or two, and a question is given up after 3.5 s."""


@dataclass(frozen=True, slots=True)
class Part:
    """One loop. ``idle_seconds``: for how long it should have acted and did not."""

    name: str
    idle_seconds: Callable[[], float]
    most_seconds: float


class Stalls:
    """All parts of one replica that must not stand still."""

    def __init__(self, parts: Iterable[Part], queues: Callable[[], Mapping[str, float]]) -> None:
        """``queues``: for each queue, for how long there was something to do and no round ended."""
        self._parts = tuple(parts)
        self._queues = queues

    def words(self) -> str:
        """Return which parts stand still and for how long; empty when none does."""
        ages = [(part.name, part.idle_seconds(), part.most_seconds) for part in self._parts]
        ages += [(f"queue {name}", seconds, QUEUE_SECONDS) for name, seconds in self._queues().items()]
        return "; ".join(
            f"{name} stands still for {seconds:.0f} s (at most {most:.0f} s)"
            for name, seconds, most in ages
            if seconds > most
        )
