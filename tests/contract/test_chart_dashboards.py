"""The dashboards in the chart: Grafana's sidecar finds them, with the names and the resource of the release."""

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chart_rendering import CHART, of_kind, render
from cta_group_operator.metrics import Figures, Metrics

FILES = sorted((CHART / "dashboards").glob("*.json"))


@pytest.fixture(params=FILES, ids=[path.stem for path in FILES])
def panels(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Return the panels of each dashboard in turn."""
    path: Path = request.param
    found: list[dict[str, Any]] = json.loads(path.read_text())["panels"]
    return found


def test_every_panel_explains_itself(panels: list[dict[str, Any]]) -> None:
    """A reader points at a title and is told in a sentence what is shown."""
    assert all(panel["title"] and panel["description"].endswith(".") for panel in panels)


def test_tables_have_a_heading_for_every_number(panels: list[dict[str, Any]]) -> None:
    """No column is called ``Value #A``."""
    for panel in (panel for panel in panels if panel["type"] == "table"):
        organize = panel["transformations"][-1]["options"]
        refs = [target["refId"] for target in panel["targets"]]
        numbers = {f"Value #{ref}" for ref in refs} if len(refs) > 1 else {"Value"}
        assert numbers <= set(organize["renameByName"])
        assert set(organize["indexByName"]) <= set(organize["renameByName"])


_UNTIL_ANOTHER_LEADS = re.compile(
    r"(?P<gauge>\w+) or last_over_time\((?P=gauge)\[1m\]\) unless on \(\) \(cta_group_leader == 1\)"
)


def leaders_gauges() -> set[str]:
    """Return what the replica that leads tells, and others do not."""
    told: list[set[str]] = []
    for figures in (Figures(leader=True), Figures()):
        metrics = Metrics("test")
        metrics.follow(partial(replace, figures))
        told.append({family.name for family in metrics.registry.collect()})
    return told[0] - told[1]


def test_what_the_leader_told_last_is_shown_until_another_leads(panels: list[dict[str, Any]]) -> None:
    """A leader that dies without a word leaves nobody who tells for some seconds: no panel is empty or 0 meanwhile."""
    led = leaders_gauges()
    assert "cta_group_quota_hard" in led
    for query in (target["expr"] for panel in panels for target in panel["targets"]):
        bare = _UNTIL_ANOTHER_LEADS.sub("", query)
        assert led.isdisjoint(re.findall(r"\w+", bare)), query


def test_gauges_are_never_added_up_over_replicas(panels: list[dict[str, Any]]) -> None:
    """Two replicas or two plugins of a node may tell the same for a moment, so each gauge is read by max or min."""
    gauge = re.compile(r"cta_group_(?!\w*_(?:total|bucket))\w+")
    for query in (target["expr"] for panel in panels for target in panel["targets"]):
        now = _UNTIL_ANOTHER_LEADS.sub(r"\g<gauge>", query)
        for found in gauge.finditer(now):
            before = now[: found.start()]
            # The last three ask only whether there are such metrics at all.
            assert re.search(r"(max|min)( by \([\w, ]+\))? ?\($|(?<!\w)count\($|0 \* (sum|max)\($", before), before


def test_the_chart_gives_each_to_grafana_s_sidecar() -> None:
    """One ConfigMap a dashboard, with label, folder and namespace by values; Grafana's braces pass untouched."""
    maps = of_kind(render("monitoring"), "ConfigMap")
    assert set(maps) == {path.stem for path in FILES}
    for path in FILES:
        made = maps[path.stem]
        assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert made["metadata"]["annotations"] == {"grafana_folder": "GPUs"}
        assert made["metadata"]["namespace"] == "grafana"
        assert json.loads(made["data"][path.name]) == json.loads(path.read_text())


def test_another_resource_name_reaches_the_queries() -> None:
    """kube-state-metrics spells the resource with underscores, its quota metric as Kubernetes does."""
    (made,) = of_kind(render("hardened"), "ConfigMap").values()
    (text,) = made["data"].values()
    assert 'resource=\\"example_com_cta_group\\"' in text
    assert 'resource=\\"requests.example.com/cta-group\\"' in text
    assert "nvidia" not in text
