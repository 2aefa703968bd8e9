"""What a dashboard shows: its panels' queries, evaluated by a real Prometheus as Grafana would send them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cluster_harness.dashboard import Dashboard, Panel, Query, fill, values_of
from cluster_harness.prometheus import Prometheus, Sample, Series

_MOST_POINTS = 300
_LEGEND_LABEL = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Window:
    """The time that a dashboard shows, in seconds since 1970."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start

    @property
    def step_seconds(self) -> float:
        """The distance of points in a time series."""
        return max(1.0, self.seconds / _MOST_POINTS)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one query gave: ``samples`` at the window's end for an instant query, ``series`` for the others."""

    query: Query
    samples: tuple[Sample, ...] = ()
    series: tuple[Series, ...] = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """A panel with what its queries gave, in their order."""

    panel: Panel
    answers: tuple[Answer, ...]

    @property
    def number(self) -> float | None:
        """The one number of a panel that shows one, None where there is no data."""
        values = [sample.value for answer in self.answers for sample in answer.samples]
        values += [series.points[-1][1] for answer in self.answers for series in answer.series]
        return values[0] if values else None


def last_seconds(prometheus: Prometheus, seconds: float) -> Window:
    """Return the window that ends now, by the clock of Prometheus."""
    now = prometheus.query("time()")[0].value
    return Window(now - seconds, now)


def answer_dashboard(dashboard: Dashboard, prometheus: Prometheus, window: Window) -> list[Answered]:
    """Evaluate every panel; QueryError for a query that Prometheus refuses."""
    values = values_of(dashboard, window.seconds)
    return [answer_panel(panel, prometheus, window, values) for panel in dashboard.panels]


def answer_panel(panel: Panel, prometheus: Prometheus, window: Window, values: Mapping[str, str]) -> Answered:
    """Evaluate one panel with the variables' values."""
    return Answered(panel, tuple(_answer(query, prometheus, window, values) for query in panel.queries))


def legend(query: Query, labels: Mapping[str, str]) -> str:
    """Return the name of a series in a legend."""
    if query.legend in ("", "__auto"):
        own = {name: value for name, value in labels.items() if name != "__name__"}
        return ", ".join(f'{name}="{value}"' for name, value in own.items()) or query.ref
    return _LEGEND_LABEL.sub(lambda found: labels.get(found[1], ""), query.legend).strip()


def _answer(query: Query, prometheus: Prometheus, window: Window, values: Mapping[str, str]) -> Answer:
    expression = fill(query.expression, values)
    if query.instant:
        return Answer(query, samples=tuple(prometheus.query(expression, window.end)))
    series = prometheus.query_range(expression, window.start, window.end, window.step_seconds)
    return Answer(query, series=tuple(series))
