"""The chart's dashboards and alerts name only metrics that exist, and are files that Grafana can import anywhere."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from cluster_harness.dashboard import GRID_COLUMNS, Place, parse_dashboard
from cta_group_operator.admission.metrics import AdmissionMetrics
from cta_group_operator.metrics import Figures, QuotaFigures, WorkloadFigures
from cta_group_operator.metrics import Metrics as OperatorMetrics
from cta_group_plugin.metrics import Metrics as PluginMetrics
from cta_group_plugin.mps.metrics import MpsMetrics
from cta_group_plugin.node_metrics import NodeFigures
from metrics_world import World

CHART = Path(__file__).resolve().parents[2] / "charts" / "cta-group"
DASHBOARDS = sorted((CHART / "dashboards").glob("*.json"))
RULES = sorted((CHART / "rules").glob("*.yaml"))
FOREIGN = re.compile(r"kube_[a-z_]+|DCGM_FI_[A-Z_]+|vllm:[a-z_]+|ALERTS|up")
"""What other exporters tell: kube-state-metrics, NVIDIA's DCGM exporter, vLLM, Prometheus itself."""

# In PromQL a metric is a word that no bracket of a function or of labels follows and that is not itself in one.
_STRING = re.compile(r'"(?:\\.|[^"\\])*"' + r"|'(?:\\.|[^'\\])*'")
_LABELS = re.compile(r"\{[^}]*\}|\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_NUMBER = re.compile(r"\[[^\]]*\]|\b\d[\w.]*")
_WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?!\s*\(|[a-zA-Z0-9_:])")
_KEYWORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "offset", "bool"}


def metrics_in(expression: str) -> set[str]:
    """Return the names of the metrics in a query."""
    bare = _NUMBER.sub(" ", _LABELS.sub(" ", _STRING.sub('""', expression)))
    return set(_WORD.findall(bare)) - _KEYWORDS


def test_the_metrics_of_a_query_are_found() -> None:
    """Functions, labels, durations and variables in a query are no metrics."""
    query = 'sum by (a) (rate(one_total{b="two"}[5m])) / on (c) group_left () (three offset 1h > 0) or vector(1e3)'
    assert metrics_in(query) == {"one_total", "three"}
    assert metrics_in("histogram_quantile(0.9, sum(rate(x_bucket[$__rate_interval])) by (le))") == {"x_bucket"}


@cache
def declared() -> frozenset[str]:
    """Return every name that the processes can tell, from the code that declares it."""
    plugin, operator, mps = PluginMetrics("test"), OperatorMetrics("test"), MpsMetrics("test")
    world = World()
    plugin.describe_node(world.node, lambda: NodeFigures(world.mps()))
    operator.follow(_full_figures)
    AdmissionMetrics(operator.registry)
    return frozenset(
        name for registry in (plugin.registry, operator.registry, mps.registry) for name in _names(registry)
    )


def _full_figures() -> Figures:
    blocked = WorkloadFigures("team-a", "Deployment", "chat", 32, "QuotaExhausted")
    return Figures(leader=True, quotas=[QuotaFigures("team-a", 1, 1, 1)], workloads=[blocked])


def _names(registry: CollectorRegistry) -> set[str]:
    """Return the names as Prometheus stores them; a family says them although it has no sample yet."""
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
    return {f"{family.name}{suffix}" for family in registry.collect() for suffix in suffixes.get(family.type, ("",))}


def is_known(metric: str) -> bool:
    """Return whether somebody tells the metric."""
    return metric in declared() or bool(FOREIGN.fullmatch(metric))


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_metric_of_a_dashboard_exists(path: Path) -> None:
    """A metric that was renamed in the code cannot stay behind in a dashboard."""
    dashboard = parse_dashboard(path.read_text())
    asked = {
        (panel.title, name) for panel in dashboard.panels for q in panel.queries for name in metrics_in(q.expression)
    }
    assert asked
    assert {it for it in asked if not is_known(it[1])} == set()


NOT_SHOWN = {
    "cta_group_api_writes_total": "a figure for measurements",
    "cta_group_build_info": "for joins in queries of one's own",
    "cta_group_decode_errors_total": "a fault of a version, read from the log",
    "cta_group_lists_total": "a figure for measurements",
    "cta_group_pokes_total": "a figure for measurements",
    "cta_group_queue_depth": "the age of the oldest work says more",
    "cta_group_workload_budget_kept": "the ratio of each objective says the same with a number",
    "cta_group_admission_seconds": "an alert is over its errors; the API server tells how long it waited",
}
"""Metrics of the operator that neither a panel nor an alert reads, and why."""


def test_every_metric_of_the_operator_is_looked_at() -> None:
    """Whoever adds one adds a panel or an alert for it, or says here why nobody needs to see it."""
    panels = [panel for path in DASHBOARDS for panel in parse_dashboard(path.read_text()).panels]
    queries = [query.expression for panel in panels for query in panel.queries]
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    rules = [rule["expr"] for group in groups for rule in group["rules"]]
    read = {_family(name) for text in (*queries, *rules) for name in metrics_in(text)}
    operator = OperatorMetrics("test")
    operator.follow(_full_figures)
    AdmissionMetrics(operator.registry)
    told = {_family(name) for name in _names(operator.registry)}
    assert told - read == {_family(name) for name in NOT_SHOWN}


def _family(name: str) -> str:
    """Return the name without what Prometheus adds for the parts of a histogram."""
    return re.sub(r"_(bucket|sum|count)$", "", name)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_every_metric_of_an_alert_exists(path: Path) -> None:
    """An alert over a metric that nobody tells can never fire."""
    rules = [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]
    asked = {(rule["alert"], name) for rule in rules for name in metrics_in(rule["expr"])}
    assert asked
    assert {it for it in asked if not is_known(it[1])} == set()


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_can_be_imported_anywhere(path: Path) -> None:
    """Grafana gives the id, the file's name is the uid, and the data source is the reader's choice."""
    content: dict[str, Any] = json.loads(path.read_text())
    assert (content["id"], content["uid"]) == (None, path.stem)
    kinds = {variable["name"]: variable["type"] for variable in content["templating"]["list"]}
    assert kinds["datasource"] == "datasource"
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    for panel in content["panels"]:
        assert panel["type"] == "row" or panel["datasource"] == chosen, panel["title"]
        assert all(target.get("datasource", chosen) == chosen for target in panel.get("targets", [])), panel["title"]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_the_panels_of_a_dashboard_lie_beside_each_other(path: Path) -> None:
    """No two panels have an id or a cell of the grid in common, and none reaches over its edge."""
    panels = parse_dashboard(path.read_text()).panels
    cells = [cell for panel in panels for cell in _cells(panel.place)]
    assert len(cells) == len(set(cells))
    assert all(x < GRID_COLUMNS for x, _ in cells)
    assert len({panel.id for panel in panels}) == len(panels)


def test_the_uids_of_the_dashboards_differ() -> None:
    """Grafana keeps one dashboard a uid, and 40 characters of it."""
    uids = [parse_dashboard(path.read_text()).uid for path in DASHBOARDS]
    assert uids
    assert len(set(uids)) == len(uids)
    assert all(len(uid) <= 40 for uid in uids)


def _cells(place: Place) -> list[tuple[int, int]]:
    return [(x, y) for x in range(place.x, place.x + place.w) for y in range(place.y, place.y + place.h)]
