"""What vLLM's ``/metrics`` say, from Prometheus' text to a reading: both generations of names, and nothing else.

The text comes from a tenant, so it may be anything: it is read in bounds, and what has not the form of metrics, or
cannot be true, is refused as a whole.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from cta_group_core.budget.histogram import Histogram
from cta_group_core.budget.objectives import Measure
from cta_group_core.budget.window import Reading, Series
from cta_group_core.errors import InvalidText
from cta_group_operator.errors import MetricsUnreadable

_HISTOGRAMS: Final[Mapping[Measure, tuple[str, ...]]] = {
    Measure.TTFT: ("vllm:time_to_first_token_seconds",),
    # The same thing under two names: some releases tell both, 0.16 and newer only the first.
    Measure.ITL: ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    Measure.E2E: ("vllm:e2e_request_latency_seconds",),
    Measure.QUEUE: ("vllm:request_queue_time_seconds",),
}
"""The first name that a server tells is read."""
_RUNNING: Final = "vllm:num_requests_running"
_WAITING: Final = "vllm:num_requests_waiting"
_CACHE: Final = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
"""Shares from 0 to 1, whatever their names say; the second until 0.15."""
_PREEMPTIONS: Final = "vllm:num_preemptions_total"
_WANTED: Final = frozenset(
    {
        *(f"{name}_bucket" for names in _HISTOGRAMS.values() for name in names),
        *(_RUNNING, _WAITING, _PREEMPTIONS, *_CACHE),
    }
)
_NAME: Final = re.compile(r"vllm[:_]([a-z0-9_]{1,60})")
"""The library that vLLM uses writes the colon as an underscore where the asker prefers OpenMetrics."""
_LONGEST_LINE: Final = 2048
_MOST_LINES: Final = 2000
"""A server with 8 engines tells some 700 lines of what is read here."""
_LARGEST: Final = 2.0**53
_LONGEST_SECONDS: Final = 1e6

_Buckets = dict[tuple[str, Series], list[tuple[float, float]]]


def read_exposition(text: str) -> Reading:
    """Return what the text says; raises MetricsUnreadable for text that is not vLLM's metrics."""
    lines = _lines(text)
    if not lines:
        raise MetricsUnreadable("it tells no latency or load under a name of vLLM's")
    buckets: _Buckets = defaultdict(list)
    values: dict[str, dict[Series, float]] = defaultdict(dict)
    for name, series, bound, value in _samples(lines):
        if bound is None:
            values[name][series] = value
        else:
            buckets[name, series].append((bound, value))
    return Reading(
        histograms=_histograms(buckets),
        preemptions=values[_PREEMPTIONS],
        running=sum(values[_RUNNING].values()),
        waiting=sum(values[_WAITING].values()),
        cache_usage=_cache_usage(values),
    )


def _lines(text: str) -> list[str]:
    """Return the lines that are read, so that nothing else has to be parsed."""
    found: list[str] = []
    for line in text.split("\n"):
        name = _NAME.match(line)
        if name is None or f"vllm:{name[1]}" not in _WANTED:
            continue
        if len(line) > _LONGEST_LINE or len(found) >= _MOST_LINES:
            raise MetricsUnreadable(
                f"a line is longer than {_LONGEST_LINE} characters, or there are over {_MOST_LINES}"
            )
        found.append(f"vllm:{line[len('vllm:') :]}")
    return found


def _samples(lines: Iterable[str]) -> Iterator[tuple[str, Series, float | None, float]]:
    """Yield name, digest of the labels without the bound, the bound of a bucket, and value."""
    try:
        families = list(text_string_to_metric_families("\n".join(lines) + "\n"))
        for sample in (one for family in families for one in family.samples):
            bound = float(sample.labels["le"]) if sample.name.endswith("_bucket") else None
            whole = bound is not None or sample.name == _PREEMPTIONS
            yield sample.name, _series(sample.labels), _checked(bound), _number(sample.value, whole=whole)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as bad:
        raise MetricsUnreadable(f"not Prometheus' text format: {type(bad).__name__}: {str(bad)[:200]}") from bad


def _checked(bound: float | None) -> float | None:
    if bound is not None and _LONGEST_SECONDS < bound < math.inf:
        raise ValueError(f"a bound of {bound:g} s")
    return bound


def _series(labels: Mapping[str, str]) -> Series:
    others = sorted((key, text) for key, text in labels.items() if key != "le")
    return blake2b(repr(others).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _number(value: float, *, whole: bool) -> float:
    """Return a value that can be; whole counts below 2^53 are added and subtracted without a rest."""
    if not 0 <= value <= _LARGEST or (whole and not float(value).is_integer()):
        raise ValueError(f"{value:g} is no count and no share")
    return float(value)


def _histograms(buckets: _Buckets) -> dict[tuple[Measure, Series], Histogram]:
    found: dict[tuple[Measure, Series], Histogram] = {}
    for measure, names in _HISTOGRAMS.items():
        told = next((name for name in names if any(key[0] == f"{name}_bucket" for key in buckets)), None)
        for (name, series), pairs in buckets.items():
            if name == f"{told}_bucket":
                found[measure, series] = _histogram(name, pairs)
    return found


def _histogram(name: str, pairs: list[tuple[float, float]]) -> Histogram:
    try:
        return Histogram.of(pairs)
    except InvalidText as wrong:
        raise MetricsUnreadable(f"{name}: {wrong}") from wrong


def _cache_usage(values: Mapping[str, Mapping[Series, float]]) -> float | None:
    told = next((values[name] for name in _CACHE if values.get(name)), None)
    return min(1.0, max(told.values())) if told else None
