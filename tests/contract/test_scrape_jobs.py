"""The chart's monitors, read as the Prometheus operator reads them, make a configuration that Prometheus takes."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart_rendering import NAMESPACE, of_kind, pod_templates, render
from cluster_harness.scrape_jobs import configuration, monitor_jobs

TARGETS = Path("/targets")
MONITORS = [
    ("PodMonitor", "cta-group-plugin"),
    ("PodMonitor", "cta-group-mps"),
    ("ServiceMonitor", "cta-group-operator"),
]


def jobs_of(kind: str, name: str) -> list[dict[str, Any]]:
    """Return the scrape jobs of one of the chart's monitors."""
    return monitor_jobs(of_kind(render("monitoring"), kind)[name], TARGETS)


def targets_of(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels that the job writes, with where each comes from."""
    steps = [it for it in job["relabel_configs"] if "target_label" in it]
    return {it["target_label"]: "".join(it.get("source_labels", [])) or it["replacement"] for it in steps}


@pytest.mark.parametrize(("kind", "name"), MONITORS)
def test_prometheus_takes_the_configuration(kind: str, name: str, tmp_path: Path) -> None:
    """Promtool finds nothing wrong in the jobs, the chart's own relabelings included."""
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump(configuration(jobs_of(kind, name))))
    done = subprocess.run(["promtool", "check", "config", str(config)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("kind", "name"), MONITORS)
def test_a_target_has_the_labels_that_dashboards_use(kind: str, name: str) -> None:
    """Node, namespace, pod, container and endpoint come from where the Prometheus operator takes them."""
    (job,) = jobs_of(kind, name)
    labels = targets_of(job)
    assert labels["node"] == "__meta_kubernetes_pod_node_name"
    assert labels["namespace"] == "__meta_kubernetes_namespace"
    assert labels["pod"] == "__meta_kubernetes_pod_name"
    assert labels["container"] == "__meta_kubernetes_pod_container_name"
    assert labels["endpoint"] == "metrics"
    assert job["honor_labels"] is True


@pytest.mark.parametrize(("kind", "name"), MONITORS)
def test_the_port_is_one_of_the_pods_own(kind: str, name: str) -> None:
    """A monitor names a port that the container really declares."""
    (job,) = jobs_of(kind, name)
    named = [it["regex"] for it in job["relabel_configs"] if it.get("source_labels", [""])[0].endswith("port_name")]
    (container,) = pod_templates(render("monitoring"))[name]["spec"]["containers"]
    assert named == ["metrics"]
    assert "metrics" in [port["name"] for port in container["ports"]]


def test_only_pods_with_the_monitors_labels_are_scraped() -> None:
    """Each matchLabel becomes a condition, spelled as Prometheus spells labels."""
    monitor = of_kind(render("monitoring"), "PodMonitor")["cta-group-plugin"]
    (job,) = monitor_jobs(monitor, TARGETS)
    kept = {it["source_labels"][0]: it["regex"] for it in job["relabel_configs"] if it.get("action") == "keep"}
    assert kept["__meta_kubernetes_pod_label_app_kubernetes_io_component"] == "plugin"
    assert kept["__meta_kubernetes_namespace"] == re.escape(NAMESPACE)
    assert len(kept) == len(monitor["spec"]["selector"]["matchLabels"]) + 2
