"""A Grafana dashboard as data: its panels, where they are, and what they ask Prometheus.

Only the part of Grafana's format that the chart's dashboards use; what is not understood is an error, because a panel
that is skipped in silence looks like one that works.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cluster_harness.errors import HarnessError
from cluster_harness.scrape_jobs import INTERVAL_SECONDS

Json = dict[str, Any]

GRID_COLUMNS = 24
EVERYTHING = ".*"  # what a variable with "All" stands for in a regular expression
_VARIABLE = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)|\[\[(\w+)(?::\w+)?\]\]")
_RATE_SCRAPES = 4  # Grafana's $__rate_interval is at least four scrapes


class DashboardError(HarnessError):
    """A dashboard holds something that is not understood; says which panel and what."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a panel is, in cells of Grafana's grid: 24 columns, rows of 30 pixels and 8 between them."""

    x: int
    y: int
    w: int
    h: int


@dataclass(frozen=True, slots=True)
class Query:
    """One question of a panel; ``legend`` is a template with ``{{label}}``."""

    ref: str
    expression: str
    legend: str
    instant: bool


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; ``defaults``, ``overrides``, ``options`` and ``transformations`` are as in the file."""

    id: int
    kind: str
    title: str
    description: str
    place: Place
    queries: tuple[Query, ...]
    defaults: Mapping[str, Any]
    overrides: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any]
    transformations: tuple[Mapping[str, Any], ...]

    def settings_of(self, field: str) -> dict[str, Any]:
        """Return the field settings of one column or series: the defaults and what is laid over them by name."""
        settings = dict(self.defaults)
        for override in self.overrides:
            matcher = override["matcher"]
            if matcher["id"] != "byName":
                raise DashboardError(f"panel {self.title!r}: override by {matcher['id']} is not understood")
            if matcher["options"] == field:
                settings |= {it["id"]: it["value"] for it in override["properties"]}
        return settings


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A whole dashboard; ``variables`` are as in the file, by name."""

    uid: str
    title: str
    variables: Mapping[str, Mapping[str, Any]]
    panels: tuple[Panel, ...]

    def panel(self, title: str) -> Panel:
        """Return the panel with that title."""
        found = [panel for panel in self.panels if panel.title == title]
        if len(found) != 1:
            titles = ", ".join(panel.title for panel in self.panels)
            raise DashboardError(f"dashboard {self.title!r} has {len(found)} panels {title!r}; there are {titles}")
        return found[0]


def parse_dashboard(text: str) -> Dashboard:
    """Return the dashboard of a JSON text; panels inside collapsed rows are taken out of them."""
    content: Json = json.loads(text)
    variables = {it["name"]: it for it in content.get("templating", {}).get("list", [])}
    panels = tuple(_panel(it) for it in _flat(content["panels"]))
    return Dashboard(content["uid"], content["title"], variables, panels)


def fill(expression: str, values: Mapping[str, str]) -> str:
    """Return the expression with each ``$variable`` replaced; DashboardError for one without a value."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[3]
        if name not in values:
            raise DashboardError(f"variable ${name} has no value in {expression}; there are {', '.join(values)}")
        return values[name]

    return _VARIABLE.sub(value, expression)


def values_of(dashboard: Dashboard, range_seconds: float) -> dict[str, str]:
    """Return what each variable stands for when everything is selected and ``range_seconds`` are shown."""
    rate = f"{_RATE_SCRAPES * INTERVAL_SECONDS}s"
    built_in = {
        "__interval": f"{INTERVAL_SECONDS}s",
        "__rate_interval": rate,
        "__range": f"{range_seconds:.0f}s",
        "__range_s": f"{range_seconds:.0f}",
    }
    return built_in | {name: _value(variable) for name, variable in dashboard.variables.items()}


def _value(variable: Mapping[str, Any]) -> str:
    kind = variable["type"]
    if kind == "datasource":
        return str(variable["query"])
    if variable.get("includeAll"):
        return str(variable.get("allValue") or EVERYTHING)
    if kind in ("textbox", "constant", "custom", "interval"):
        return str(variable.get("current", {}).get("value") or variable["query"].split(",")[0])
    raise DashboardError(f"variable {variable['name']!r} of type {kind} has no value that stands for everything")


def _flat(panels: list[Json]) -> Iterator[Json]:
    for panel in panels:
        if panel["type"] != "row":
            yield panel
        yield from panel.get("panels", [])


def _panel(content: Json) -> Panel:
    fields = content.get("fieldConfig", {})
    return Panel(
        content["id"],
        content["type"],
        content["title"],
        content.get("description", ""),
        Place(**content["gridPos"]),
        tuple(_query(it) for it in content.get("targets", [])),
        fields.get("defaults", {}),
        tuple(fields.get("overrides", [])),
        content.get("options", {}),
        tuple(content.get("transformations", [])),
    )


def _query(content: Json) -> Query:
    return Query(content["refId"], content["expr"], content.get("legendFormat", ""), bool(content.get("instant")))
