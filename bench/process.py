"""What a process has taken of the machine, out of /proc, what it tells in its metrics, and who goes before whom."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_mib(pid: int) -> float:
    """Return the most resident memory that a process ever had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"no VmHWM of process {pid}")


def children_give_way(niceness: int) -> int:
    """Let every process below this one, with all its threads, stand back for the others; return how many there are."""
    parents = {int(file.parent.name): _parent(file) for file in Path("/proc").glob("[0-9]*/stat")}
    below: set[int] = set()
    new = {os.getpid()}
    while new := {pid for pid, parent in parents.items() if parent in new}:
        below |= new
    for thread in [thread for pid in below for thread in Path(f"/proc/{pid}/task").glob("*")]:
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), niceness)
    return len(below)


def _parent(file: Path) -> int:
    try:
        return int(file.read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it ended meanwhile


@dataclass(frozen=True, slots=True)
class Exposition:
    """One scrape: every sample by its name and labels."""

    samples: Mapping[tuple[str, frozenset[tuple[str, str]]], float]

    @classmethod
    def of(cls, text: str) -> "Exposition":
        """Read what /metrics answers."""
        families = text_string_to_metric_families(text)
        return cls({(one.name, frozenset(one.labels.items())): one.value for each in families for one in each.samples})

    def total(self, name: str) -> float:
        """Return the sum of all series of a name."""
        return sum(value for (series, _), value in self.samples.items() if series == name)

    def buckets(self, name: str) -> dict[tuple[frozenset[tuple[str, str]], float], float]:
        """Return the cumulative buckets of a histogram by the labels beside ``le`` and the upper bound."""
        found = {}
        for (series, labels), value in self.samples.items():
            if series == f"{name}_bucket":
                rest = frozenset(one for one in labels if one[0] != "le")
                found[rest, float(dict(labels)["le"])] = value
        return found


def quantile_between(before: Exposition, after: Exposition, name: str, share: float) -> float:
    """Return the bound of the bucket in which a quantile lies of what was seen between two scrapes, over all labels."""
    earlier = before.buckets(name)
    counts: dict[float, float] = {}
    for (labels, bound), value in after.buckets(name).items():
        counts[bound] = counts.get(bound, 0.0) + value - earlier.get((labels, bound), 0.0)
    wanted = share * counts[float("inf")]
    return min(bound for bound, count in counts.items() if count >= wanted)
