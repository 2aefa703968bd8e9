"""Histograms as Prometheus has them: cumulative counts by upper bound. Differences, sums and quantiles of them."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from cta_group_core.errors import InvalidText


@dataclass(frozen=True, slots=True)
class Estimate:
    """A quantile out of buckets, in seconds."""

    seconds: float
    """As Prometheus' ``histogram_quantile`` interpolates it."""
    low: float
    """It is above this for certain."""
    high: float
    """It is at most this; infinite where it lies beyond the last bound."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative counts of latencies."""

    bounds: tuple[float, ...]
    """Upper bounds in seconds, above 0 and ascending; the last is infinite."""
    counts: tuple[float, ...]
    """How many observations are at most each bound."""

    def __post_init__(self) -> None:
        bounds, counts = self.bounds, self.counts
        if len(bounds) != len(counts) or not bounds or bounds[-1] != math.inf:
            raise InvalidText(f"a histogram of {len(counts)} counts and {len(bounds)} bounds, the last not infinite")
        if not bounds[0] > 0 or any(not lower < upper for lower, upper in pairwise(bounds)):
            raise InvalidText("a histogram whose bounds are not above 0 and ascending")
        if not (counts[0] >= 0 and counts[-1] < math.inf) or any(not low <= high for low, high in pairwise(counts)):
            raise InvalidText("a histogram whose counts fall, or are no counts")

    @classmethod
    def of(cls, buckets: Iterable[tuple[float, float]]) -> Self:
        """Make it of bounds and counts in any order; raises InvalidText."""
        ordered = sorted(buckets)
        return cls(tuple(bound for bound, _ in ordered), tuple(count for _, count in ordered))

    @property
    def total(self) -> float:
        """How many observations there are."""
        return self.counts[-1]

    def increase_since(self, before: "Histogram") -> "Histogram":
        """Return what was observed since ``before``; all of it when counting began anew meanwhile.

        It did when a bucket has lost observations, or the buckets are others: a server was started again.
        """
        if before.bounds != self.bounds or any(
            now < then for now, then in zip(_single(self.counts), _single(before.counts), strict=True)
        ):
            return self
        return Histogram(self.bounds, tuple(now - then for now, then in zip(self.counts, before.counts, strict=True)))

    def quantile(self, share: float) -> Estimate | None:
        """Return a quantile, 0 < ``share`` < 1; None without observations, or without any bound but infinity."""
        if self.total == 0 or len(self.bounds) == 1:
            return None
        rank = share * self.total
        place = bisect_left(self.counts, rank, hi=len(self.counts) - 1)
        if place == len(self.bounds) - 1:
            return Estimate(self.bounds[-2], self.bounds[-2], math.inf)
        low, below = (self.bounds[place - 1], self.counts[place - 1]) if place else (0.0, 0.0)
        high = self.bounds[place]
        part = (rank - below) / (self.counts[place] - below)
        return Estimate(min(high, low + (high - low) * part), low, high)


def summed(histograms: Sequence[Histogram]) -> Histogram:
    """Return all observations together, at least one histogram given.

    Where they have different bounds, those remain that all have: what is known of the sum is then exact all the same.
    """
    common = set.intersection(*(set(one.bounds) for one in histograms))
    bounds = tuple(sorted(common))
    counts = [0.0] * len(bounds)
    for one in histograms:
        known = dict(zip(one.bounds, one.counts, strict=True))
        counts = [count + known[bound] for count, bound in zip(counts, bounds, strict=True)]
    return Histogram(bounds, tuple(counts))


def _single(counts: Sequence[float]) -> list[float]:
    """Return how many observations are in each bucket alone."""
    return [counts[0], *(high - low for low, high in pairwise(counts))]
