"""The worst that was seen in the last day, once that is an hour: ten minutes say nothing of whether fewer groups do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cta_group_core.budget.outcome import Outcome
from cta_group_core.budget.window import Observed

MEMORY_SECONDS: Final = 24 * 3600.0
"""What is older is forgotten."""
LEAST_SECONDS: Final = 3600.0
"""Watched for less, nothing is said about fewer groups."""
_SPACING_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Peak:
    """The worst of one stretch of time."""

    since: float
    until: float
    ratio: float
    """Largest latency as a share of its limit, at most."""
    waiting: float
    preemptions: float
    cache_usage: float


@dataclass(frozen=True, slots=True)
class Peaks:
    """The worst of each ten minutes that had enough requests to judge, the oldest first."""

    stretches: tuple[Peak, ...] = ()

    def after(self, moment: float, found: Sequence[Outcome], observed: Observed) -> "Peaks":
        """Return the peaks with one more judgement; one that misses a latency says nothing and is left out."""
        if any(one.estimate is None for one in found):
            return self
        now = Peak(
            since=moment,
            until=moment,
            ratio=max(one.ratio_at_most for one in found),
            waiting=observed.waiting,
            preemptions=observed.preemptions,
            cache_usage=1.0 if observed.cache_usage is None else observed.cache_usage,
        )
        kept = tuple(one for one in self.stretches if one.until > moment - MEMORY_SECONDS)
        if kept and moment - kept[-1].since < _SPACING_SECONDS:
            return Peaks((*kept[:-1], _worst((kept[-1], now))))
        return Peaks((*kept, now))

    def worst(self) -> Peak | None:
        """Return the worst of all; None when it was watched for less than :data:`LEAST_SECONDS`."""
        if not self.stretches or self.stretches[-1].until - self.stretches[0].since < LEAST_SECONDS:
            return None
        return _worst(self.stretches)


def _worst(peaks: Sequence[Peak]) -> Peak:
    return Peak(
        since=peaks[0].since,
        until=peaks[-1].until,
        ratio=max(one.ratio for one in peaks),
        waiting=max(one.waiting for one in peaks),
        preemptions=max(one.preemptions for one in peaks),
        cache_usage=max(one.cache_usage for one in peaks),
    )
