"""Samples of a figure, their spread, the limits that they must keep, and the machine that they were taken on."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import grpc

_HUNDREDTHS = 100


@dataclass
class Figures:
    """Every sample of one subject, by figure. A figure's name ends in its unit."""

    samples: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, *values: float) -> None:
        """Take samples of a figure."""
        self.samples.setdefault(name, []).extend(values)

    def spread(self, name: str) -> dict[str, float]:
        """Return how the samples of a figure lie, and how many there are."""
        values = self.samples[name]
        return {
            "runs": len(values),
            "min": round(min(values), 3),
            "median": round(median(values), 3),
            "p90": round(percentile(values, 90), 3),
            "p99": round(percentile(values, 99), 3),
            "max": round(max(values), 3),
        }

    def spreads(self) -> dict[str, dict[str, float]]:
        """Return the spread of every figure."""
        return {name: self.spread(name) for name in self.samples}


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile as it is among the samples, interpolated; of a single sample itself."""
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=_HUNDREDTHS, method="inclusive")[percent - 1]


@dataclass(frozen=True, slots=True)
class Limit:
    """What a figure may be at most."""

    about: str
    value: float
    at_most: float
    unit: str

    def verdict(self) -> dict[str, object]:
        """Return the limit and whether it was kept."""
        return {
            "about": self.about,
            "value": round(self.value, 3),
            "below": self.at_most,
            "unit": self.unit,
            "passed": self.value < self.at_most,
        }


def machine() -> Mapping[str, object]:
    """Describe the machine without naming it."""
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "cpu": _after(Path("/proc/cpuinfo"), "model name"),
        "memory_gib": round(int(_after(Path("/proc/meminfo"), "MemTotal").split()[0]) / 2**20, 1),
        "kernel": platform.release().partition("-")[0],
        "python": platform.python_version(),
        "grpcio": grpc.__version__,
        "load_average": round(os.getloadavg()[0], 2),
    }


def _after(file: Path, key: str) -> str:
    for line in file.read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return "unknown"
