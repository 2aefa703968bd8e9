"""What a latency budget says: the annotation ``ctagroup.dev/budget``, such as ``ttft=400ms,itl-p99=30ms``.

A budget is one or more terms with commas between them. A term is a measure, perhaps a quantile, and a limit::

    ttft[-p50|-p75|-p90|-p95|-p99]=<number>(ms|s)

Without a quantile it is p95. The same measure may have several quantiles. Spaces around a term are ignored.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from cta_group_core.errors import InvalidText
from cta_group_core.names import ANNOTATION_BUDGET

QUANTILES: Final = (50, 75, 90, 95, 99)
"""The quantiles that a budget may name, in percent: few, so that they can be the label of a metric."""
DEFAULT_QUANTILE: Final = 95
_LONGEST_TEXT: Final = 256
_SHORTEST_SECONDS: Final = 1e-6
_LONGEST_SECONDS: Final = 3600.0
_TERM: Final = re.compile(r"([^=]*)=([^=]*)")
_NAME: Final = re.compile(r"([a-z0-9]+?)(?:-p([0-9]+))?")
_DURATION: Final = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,6})?)(ms|s)")
_EXAMPLE: Final = "write it like ttft=400ms,itl-p99=30ms"


class Measure(StrEnum):
    """A latency that vLLM measures."""

    TTFT = "ttft"
    """From the arrival of a request to its first token."""
    ITL = "itl"
    """Between two tokens of a request."""
    E2E = "e2e"
    """From the arrival of a request to its last token."""
    QUEUE = "queue"
    """From the arrival of a request until vLLM begins with it."""


@dataclass(frozen=True, slots=True)
class Objective:
    """One term: that many percent of the measured latencies are to be at most ``limit_seconds``."""

    measure: Measure
    percent: int
    limit_seconds: float

    @property
    def name(self) -> str:
        """Measure and quantile, such as ``ttft-p95``."""
        return f"{self.measure}-p{self.percent}"

    @property
    def quantile(self) -> float:
        """The quantile as a share."""
        return self.percent / 100

    @property
    def needed(self) -> int:
        """How many observations there must be before the quantile says anything: 20, and one beyond it at least."""
        return max(20, 100 // (100 - self.percent))

    def __str__(self) -> str:
        return f"{self.name}={duration(self.limit_seconds)}"


@dataclass(frozen=True, slots=True)
class Budget:
    """What a workload wants to keep."""

    objectives: tuple[Objective, ...]
    """At least one, no measure and quantile twice."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the annotation; raises InvalidText, which names it, what was given and what is allowed."""
        if not text.strip() or len(text) > _LONGEST_TEXT:
            raise _invalid(text[:_LONGEST_TEXT], f"a budget has 1 to {_LONGEST_TEXT} characters")
        objectives = tuple(_objective(term.strip(), text) for term in text.split(","))
        names = [one.name for one in objectives]
        for name in names:
            if names.count(name) > 1:
                raise _invalid(text, f"{name} is in it twice")
        return cls(objectives)

    def __str__(self) -> str:
        return ",".join(map(str, self.objectives))


def duration(seconds: float) -> str:
    """Return seconds as people write them: in milliseconds below one second, with three figures at most."""
    if seconds < 1:
        return f"{seconds * 1000:.3g}ms"
    return f"{seconds:.3g}s" if seconds < 100 else f"{seconds:.0f}s"  # noqa: PLR2004 - three figures


def _objective(term: str, text: str) -> Objective:
    parts = _TERM.fullmatch(term)
    if parts is None:
        raise _invalid(text, f"{term!r} has not the form MEASURE=LIMIT")
    name, limit = parts.group(1).strip(), parts.group(2).strip()
    measure, percent = _measure(name, text)
    return Objective(measure, percent, _limit(name, limit, text))


def _measure(name: str, text: str) -> tuple[Measure, int]:
    parts = _NAME.fullmatch(name)
    if parts is None or parts.group(1) not in tuple(Measure):
        raise _invalid(
            text, f"{name!r} is no measure; there are {', '.join(Measure)}, each with a quantile if you like"
        )
    given = parts.group(2)
    percent = DEFAULT_QUANTILE if given is None else int(given[:3])
    if percent not in QUANTILES:
        allowed = ", ".join(f"p{one}" for one in QUANTILES)
        raise _invalid(text, f"{name!r} has no quantile that is offered; there are {allowed}")
    return Measure(parts.group(1)), percent


def _limit(name: str, limit: str, text: str) -> float:
    parts = _DURATION.fullmatch(limit)
    if parts is None:
        raise _invalid(text, f"the limit of {name} is {limit!r}, not a number with ms or s behind it")
    seconds = float(parts.group(1)) / (1000 if parts.group(2) == "ms" else 1)
    if not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
        raise _invalid(text, f"the limit of {name} is {limit}, not from 0.001ms to {_LONGEST_SECONDS:.0f}s")
    return seconds


def _invalid(text: str, why: str) -> InvalidText:
    return InvalidText(f"annotation {ANNOTATION_BUDGET}: {text!r}: {why}; {_EXAMPLE}")
