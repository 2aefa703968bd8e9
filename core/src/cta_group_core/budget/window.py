"""What the servers of one workload told over time: readings of single pods, and what they come to together."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from cta_group_core.budget.histogram import Histogram, summed
from cta_group_core.budget.objectives import Measure

WINDOW_SECONDS: Final = 600.0
"""Latencies are judged over so long."""

Series = str
"""What tells the series of one server apart, such as those of its engines: a digest of their labels."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one server told at one moment. Counters since its start, gauges now."""

    histograms: Mapping[tuple[Measure, Series], Histogram]
    preemptions: Mapping[Series, float] = field(default_factory=dict)
    running: float = 0.0
    """Requests that are worked on."""
    waiting: float = 0.0
    """Requests that are in the queue."""
    cache_usage: float | None = None
    """Share of the KV cache that is in use, of the fullest engine; None where it is not told."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one round of readings adds."""

    moment: float
    """Seconds of a clock that never goes back."""
    pods: int
    """How many servers were read."""
    latencies: tuple[tuple[Measure, Histogram], ...] = ()
    """Since the look before."""
    preemptions: float = 0.0
    waiting: float = 0.0
    """Mean over the servers."""
    cache_usage: float | None = None
    """Of the fullest server."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the looks of a window come to."""

    seconds: float
    """From the first look to the last."""
    pods: int
    """How many servers the last look read."""
    latencies: Mapping[Measure, Histogram]
    preemptions: float = 0.0
    waiting: float = 0.0
    """Mean length of the queue of a server."""
    cache_usage: float | None = None
    """The most that was seen."""


@dataclass(frozen=True, slots=True)
class Window:
    """The looks of the last :data:`WINDOW_SECONDS`, and the newest reading of each server."""

    looks: tuple[Look, ...] = ()
    newest: Mapping[str, tuple[float, Reading]] = field(default_factory=dict)
    """By uid of the pod, with the moment of the reading."""

    def after(self, moment: float, readings: Mapping[str, Reading], present: Collection[str]) -> "Window":
        """Return the window after one more round of readings, by uid of the pod; ``present`` are the pods that exist.

        The first reading of a server only tells where its counters are. One that could not be read keeps its newest
        reading, so that its next one covers the time between, unless that would be longer than a window.
        """
        oldest = moment - WINDOW_SECONDS
        known = {uid: one for uid, one in self.newest.items() if uid in present and one[0] >= oldest}
        look = _look(moment, {uid: one for uid, (_, one) in known.items()}, readings)
        kept = tuple(one for one in self.looks if one.moment > oldest)
        return replace(self, looks=(*kept, look), newest={**known, **{u: (moment, r) for u, r in readings.items()}})

    def observed(self) -> Observed | None:
        """Return what the window shows; None before two looks."""
        looks = [one for one in self.looks if one.pods]
        if len(looks) < 2:  # noqa: PLR2004 - a difference needs two
            return None
        usages = [one.cache_usage for one in looks if one.cache_usage is not None]
        return Observed(
            seconds=looks[-1].moment - looks[0].moment,
            pods=looks[-1].pods,
            latencies=_summed([pair for one in looks for pair in one.latencies]),
            preemptions=sum(one.preemptions for one in looks),
            waiting=sum(one.waiting for one in looks) / len(looks),
            cache_usage=max(usages, default=None),
        )


def _look(moment: float, before: Mapping[str, Reading], now: Mapping[str, Reading]) -> Look:
    pairs: list[tuple[Measure, Histogram]] = []
    preemptions = 0.0
    for uid, reading in now.items():
        if uid in before:
            pairs += _grown(before[uid], reading)
            preemptions += _preempted(before[uid], reading)
    usages = [one.cache_usage for one in now.values() if one.cache_usage is not None]
    return Look(
        moment=moment,
        pods=len(now),
        latencies=tuple(_summed(pairs).items()),
        preemptions=preemptions,
        waiting=sum(one.waiting for one in now.values()) / len(now) if now else 0.0,
        cache_usage=max(usages, default=None),
    )


def _grown(before: Reading, now: Reading) -> list[tuple[Measure, Histogram]]:
    """Return what each series gained. One that is new, such as that of an adapter, began at nothing."""
    return [
        (key[0], after.increase_since(before.histograms[key]) if key in before.histograms else after)
        for key, after in now.histograms.items()
    ]


def _preempted(before: Reading, now: Reading) -> float:
    return sum(
        count - then if count >= (then := before.preemptions.get(series, 0.0)) else count
        for series, count in now.preemptions.items()
    )


def _summed(pairs: Collection[tuple[Measure, Histogram]]) -> dict[Measure, Histogram]:
    measures = dict.fromkeys(measure for measure, _ in pairs)
    return {measure: summed([one for other, one in pairs if other is measure]) for measure in measures}
