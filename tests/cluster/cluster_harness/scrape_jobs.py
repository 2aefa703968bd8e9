"""What Prometheus scrapes: the configuration that the Prometheus operator makes from monitors, and plain addresses.

Pure: objects as in YAML in, parts of prometheus.yml out. The chart's PodMonitors and ServiceMonitors are read, not
repeated, so a port, a label or a relabeling that is wrong there is wrong here too. The labels of a target are those
of the Prometheus operator (pkg/prometheus/promcfg.go): namespace, container, pod, endpoint, job; for a service also
its name. Only the discovery differs: Debian's Prometheus has none for Kubernetes, so targets come from the files of
``discovery``, with the labels that Prometheus' own discovery gives.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PODS_FILE = "pods.json"
ENDPOINTS_FILE = "endpoints.json"
INTERVAL_SECONDS = 2
"""Short, so that tests and pictures need not wait; a monitor's own interval is for clusters that live for years."""

Json = dict[str, Any]

META = "__meta_kubernetes_"


def configuration(jobs: Iterable[Json], rule_files: Iterable[str] = ()) -> Json:
    """Return the content of prometheus.yml."""
    interval = f"{INTERVAL_SECONDS}s"
    settings = {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval}
    return {"global": settings, "rule_files": list(rule_files), "scrape_configs": list(jobs)}


def static_job(name: str, addresses: Iterable[str], labels: Mapping[str, str] | None = None) -> Json:
    """Return a job that scrapes ``host:port`` addresses, each with the labels."""
    targets = {"targets": list(addresses), "labels": dict(labels or {})}
    return {"job_name": name, "honor_labels": True, "static_configs": [targets]}


def monitor_jobs(monitor: Mapping[str, Any], discovered: Path) -> list[Json]:
    """Return the jobs of a PodMonitor or a ServiceMonitor over the targets in the folder ``discovered``."""
    spec, metadata = monitor["spec"], monitor["metadata"]
    if monitor["kind"] == "PodMonitor":
        targets, endpoints, relabelings = PODS_FILE, spec["podMetricsEndpoints"], _pod_relabelings
    else:
        targets, endpoints, relabelings = ENDPOINTS_FILE, spec["endpoints"], _service_relabelings
    return [
        {
            "job_name": f"{monitor['kind']}/{metadata['namespace']}/{metadata['name']}/{number}",
            "honor_labels": endpoint.get("honorLabels", False),
            "metrics_path": endpoint.get("path", "/metrics"),
            "file_sd_configs": [{"files": [str(discovered / targets)]}],
            "relabel_configs": [
                _keep("namespace", metadata["namespace"]),
                {"target_label": "job", "replacement": f"{metadata['namespace']}/{metadata['name']}"},
                *relabelings(spec["selector"]["matchLabels"], endpoint["port"]),
                *map(_snake_case, endpoint.get("relabelings", [])),
            ],
            "metric_relabel_configs": [_snake_case(it) for it in endpoint.get("metricRelabelings", [])],
        }
        for number, endpoint in enumerate(endpoints)
    ]


def _pod_relabelings(labels: Mapping[str, str], port: str) -> list[Json]:
    return [
        _drop("pod_phase", "(Failed|Succeeded)"),
        *(_keep(f"pod_label_{label_name(name)}", value) for name, value in labels.items()),
        _keep("pod_container_port_name", port),
        *_common(port),
    ]


def _service_relabelings(labels: Mapping[str, str], port: str) -> list[Json]:
    return [
        *(_keep(f"service_label_{label_name(name)}", value) for name, value in labels.items()),
        _keep("endpoint_port_name", port),
        *_common(port),
        _copy("service_name", "service"),
        _copy("service_name", "job"),
    ]


def _common(port: str) -> list[Json]:
    copied = (("namespace", "namespace"), ("pod_container_name", "container"), ("pod_name", "pod"))
    return [*(_copy(source, target) for source, target in copied), {"target_label": "endpoint", "replacement": port}]


def _keep(source: str, value: str) -> Json:
    return {"action": "keep", "source_labels": [META + source], "regex": re.escape(value)}


def _drop(source: str, pattern: str) -> Json:
    return {"action": "drop", "source_labels": [META + source], "regex": pattern}


def _copy(source: str, target: str) -> Json:
    return {"source_labels": [META + source], "target_label": target}


def label_name(name: str) -> str:
    """Return a Kubernetes label as Prometheus spells it."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


def _snake_case(relabeling: Mapping[str, Any]) -> Json:
    """Return a relabeling of a monitor with the keys of prometheus.yml."""
    return {re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key): value for key, value in relabeling.items()}
