"""Metrics and Prometheus' text format, as far as the processes of a node need them.

prometheus_client loads an HTTP server, a WSGI server, an HTTP client and the e-mail package with itself: some MiB on
every node of a cluster (docs/decisions/0003). The names here are its names, so that a reader finds nothing new; the
format is https://prometheus.io/docs/instrumenting/exposition_formats/, version 0.0.4.

Counters and gauges belong to the thread that writes them. A scrape in another thread reads whole values.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

CONTENT_TYPE_LATEST: Final = "text/plain; version=0.0.4; charset=utf-8"


class Sample(NamedTuple):
    """One series at this moment."""

    name: str
    labels: Mapping[str, str]
    value: float


class Metric:
    """A family: one name with its meaning and its series. Made anew for each scrape."""

    type = "gauge"
    _suffix = ""

    def __init__(self, name: str, documentation: str, *, labels: Sequence[str] = ()) -> None:
        """``name`` goes without the suffix that its type adds."""
        self.name = name
        self.documentation = documentation
        self.samples: list[Sample] = []
        self._labels = tuple(labels)

    @property
    def told_name(self) -> str:
        """The name of its series."""
        return f"{self.name}{self._suffix}"

    def add_metric(self, labels: Iterable[str], value: float) -> None:
        """Add a series; ``labels`` are values in the order of the family's labels."""
        self.samples.append(Sample(self.told_name, dict(zip(self._labels, labels, strict=True)), value))


class GaugeMetricFamily(Metric):
    """A family of figures that go up and down."""


class CounterMetricFamily(Metric):
    """A family of counts; its series end in ``_total``."""

    type = "counter"
    _suffix = "_total"


class Collector(Protocol):
    """Whatever has families to tell."""

    def collect(self) -> Iterable[Metric]:
        """Return the families as they are now; called in the thread of a scrape."""


class CollectorRegistry:
    """Everything that one process tells."""

    def __init__(self) -> None:
        self._collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        """Add a collector; it is told behind those that are there."""
        self._collectors.append(collector)

    def collect(self) -> list[Metric]:
        """Return every family."""
        return [family for collector in tuple(self._collectors) for family in collector.collect()]

    def get_sample_value(self, name: str, labels: Mapping[str, str] | None = None) -> float | None:
        """Return the value of one series, ``None`` when there is none with exactly these labels."""
        wanted = dict(labels or {})
        found = (sample.value for family in self.collect() for sample in family.samples if sample[:2] == (name, wanted))
        return next(found, None)


class CounterSeries:
    """One count."""

    value = 0.0

    def inc(self, amount: float = 1) -> None:
        """Add ``amount``, which is not negative."""
        self.value += amount


class GaugeSeries:
    """One figure."""

    value = 0.0

    def set(self, value: float) -> None:
        """Take a new value."""
        self.value = value


_Series = TypeVar("_Series", CounterSeries, GaugeSeries)


class _Instrument(Generic[_Series]):
    """A family that lives as long as the process. Without labels its one series is there from the start, at zero."""

    def __init__(
        self,
        family: Callable[[], Metric],
        series: Callable[[], _Series],
        labelnames: Sequence[str],
        registry: CollectorRegistry,
    ) -> None:
        self._family = family
        self._new_series: Callable[[], _Series] = series
        self._labelnames = tuple(labelnames)
        self._series: dict[tuple[str, ...], _Series] = {}
        if not labelnames:
            self.labels()
        registry.register(self)

    def labels(self, **values: str) -> _Series:
        """Return the series with these labels, begun at zero when there is none."""
        key = tuple(str(values.pop(name)) for name in self._labelnames)
        if values:
            raise KeyError(f"{self._family().name} has no labels {sorted(values)}, only {self._labelnames}")
        return self._series.setdefault(key, self._new_series())

    def remove(self, *values: str) -> None:
        """End the series with these values of labels, if there is one."""
        self._series.pop(values, None)

    def collect(self) -> list[Metric]:
        """Return the family as it is now."""
        family = self._family()
        for values, series in tuple(self._series.items()):
            family.add_metric(values, series.value)
        return [family]


class Counter(_Instrument[CounterSeries]):
    """A count, or one for each set of labels."""

    def __init__(
        self, name: str, documentation: str, labelnames: Sequence[str] = (), *, registry: CollectorRegistry
    ) -> None:
        super().__init__(
            lambda: CounterMetricFamily(name, documentation, labels=labelnames), CounterSeries, labelnames, registry
        )

    def inc(self, amount: float = 1) -> None:
        """Add to a count without labels."""
        self.labels().inc(amount)


class Gauge(_Instrument[GaugeSeries]):
    """A figure, or one for each set of labels."""

    def __init__(
        self, name: str, documentation: str, labelnames: Sequence[str] = (), *, registry: CollectorRegistry
    ) -> None:
        super().__init__(
            lambda: GaugeMetricFamily(name, documentation, labels=labelnames), GaugeSeries, labelnames, registry
        )

    def set(self, value: float) -> None:
        """Set a figure without labels."""
        self.labels().set(value)


def generate_latest(registry: CollectorRegistry) -> bytes:
    """Return everything in Prometheus' text format."""
    return "".join(_lines(registry.collect())).encode()


def _lines(families: Iterable[Metric]) -> Iterable[str]:
    for family in families:
        meaning = family.documentation.replace("\\", r"\\").replace("\n", r"\n")
        yield f"# HELP {family.told_name} {meaning}\n# TYPE {family.told_name} {family.type}\n"
        for name, labels, value in family.samples:
            told = ",".join(f'{label}="{_escaped(labels[label])}"' for label in sorted(labels))
            yield f"{name}{{{told}}} {float(value)}\n" if told else f"{name} {float(value)}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
