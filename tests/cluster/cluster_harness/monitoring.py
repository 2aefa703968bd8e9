"""The release, watched: Prometheus scrapes what the chart's monitors name, dashboards are found as Grafana finds them.

The private cluster has no Prometheus operator, so the monitors and rules are rendered, not installed, and read here.
"""

from typing import Any

import yaml

from cluster_harness.cluster import Cluster
from cluster_harness.dashboard import Dashboard, parse_dashboard
from cluster_harness.prometheus import Prometheus
from cluster_harness.prometheus_program import add_prometheus
from cluster_harness.release import CHART, NAME, NAMESPACE, SIMULATED_VALUES
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for

_SWITCHES = ("podMonitor", "serviceMonitor", "prometheusRule")
_SIDECAR_LABEL = "grafana_dashboard=1"  # what Grafana's sidecar looks for by default


def watch_release(cluster: Cluster, tools: Tools) -> Prometheus:
    """Start a Prometheus that scrapes the release and evaluates its alerts; return after a scrape of every target."""
    rendered = _rendered(tools)
    monitors = [it for it in rendered if it["kind"] in ("PodMonitor", "ServiceMonitor")]
    groups = [group for it in rendered if it["kind"] == "PrometheusRule" for group in it["spec"]["groups"]]
    prometheus = add_prometheus(cluster, monitors, groups)
    wait_for(lambda: _all_up(prometheus, len(monitors)), "a scrape of every part")
    return prometheus


def installed_dashboards(tools: Tools) -> dict[str, Dashboard]:
    """Return the dashboards of the labelled ConfigMaps of all namespaces by their uid."""
    maps = tools.objects("configmaps", "--all-namespaces", "--selector", _SIDECAR_LABEL)["items"]
    found = [parse_dashboard(text) for it in maps for name, text in it["data"].items() if name.endswith(".json")]
    return {dashboard.uid: dashboard for dashboard in found}


def _rendered(tools: Tools) -> list[dict[str, Any]]:
    """Return the chart's objects with every part of its monitoring on."""
    switches = [argument for name in _SWITCHES for argument in ("--set", f"monitoring.{name}.enabled=true")]
    place = ("--namespace", NAMESPACE, "--values", str(SIMULATED_VALUES))
    text = tools.helm("template", NAME, str(CHART), *place, *switches)
    return [it for it in yaml.safe_load_all(text) if it]


def _all_up(prometheus: Prometheus, job_count: int) -> bool:
    """Return whether each monitor has found a target, and each target answers."""
    targets = prometheus.targets()
    return len({target.job for target in targets}) == job_count and all(target.health == "up" for target in targets)
