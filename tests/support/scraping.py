"""A scrape that goes on while a test changes things: what was told at every moment, and which counters went back."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from cluster_harness.waiting import wait_for
from http_probe import fetch
from meanwhile import meanwhile

_PAUSE_SECONDS = 0.2
_COUNTERS = ("_total", "_count", "_sum", "_bucket")


@dataclass(frozen=True, slots=True)
class Scrape:
    """One exposition, by series as it is written there; times of the monotonic clock."""

    began: float
    ended: float
    series: Mapping[str, float]

    @classmethod
    def of(cls, url: str) -> "Scrape":
        """Ask for it. Raises OSError."""
        began = time.monotonic()
        text = fetch(url)
        lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return cls(began, time.monotonic(), {name: float(value) for name, _, value in lines})


@dataclass
class Scraper:
    """Scrapes one process five times a second."""

    url: str
    taken: list[Scrape] = field(default_factory=list)
    _until: dict[str, float] = field(default_factory=dict)
    _failed: list[str] = field(default_factory=list)

    @property
    def now(self) -> Mapping[str, float]:
        """What was told last."""
        return self.taken[-1].series

    def wait_told(self, *series: str) -> None:
        """Wait until all of them are told; each has to be told at every scrape from its first until :meth:`may_go`."""
        self._until |= dict.fromkeys(series, math.inf)
        wait_for(lambda: set(series) <= self.now.keys(), f"the series {series}")

    def may_go(self, *series: str) -> None:
        """Say that what they tell of is about to go."""
        self._until |= dict.fromkeys(series, time.monotonic())

    def missed(self) -> list[str]:
        """Return each series that a scrape lacks although what it tells of was there."""
        return [one for one, until in self._until.items() if self._has_gap(one, until)]

    def _has_gap(self, series: str, until: float) -> bool:
        told = [series in scrape.series for scrape in self.taken if scrape.ended <= until]
        return True not in told or not all(told[told.index(True) :])

    def went_back(self) -> list[str]:
        """Return each counter that was lower than before, or was gone."""
        return [
            name
            for before, after in zip(self.taken, self.taken[1:], strict=False)
            for name, value in before.series.items()
            if name.partition("{")[0].endswith(_COUNTERS) and after.series.get(name, -1.0) < value
        ]

    def failures(self) -> list[str]:
        """Return the scrapes that were not answered."""
        return self._failed

    def scrape(self) -> None:
        """Scrape once."""
        try:
            self.taken.append(Scrape.of(self.url))
        except OSError as failed:
            self._failed.append(str(failed))


@contextmanager
def scraping(url: str) -> Iterator[Scraper]:
    """Scrape until the block ends; there is a first scrape when it begins."""
    made = Scraper(url, [Scrape.of(url)])
    with meanwhile(made.scrape, pause_seconds=_PAUSE_SECONDS):
        yield made
