"""Starts Debian's Prometheus: inside a cluster, where it scrapes pods, or beside a test, where it scrapes addresses.

::

    prometheus = add_prometheus(cluster, monitors)                       # ends with the cluster
    with run_prometheus(tmp_path, [static_job("mine", ["127.0.0.1:9400"])]) as prometheus:
        prometheus.query("up")
"""

import contextlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from cluster_harness.cluster import Cluster
from cluster_harness.components import Component
from cluster_harness.control_plane_spec import CREDENTIALS
from cluster_harness.errors import HarnessError, StartError
from cluster_harness.probes import LOOPBACK, free_ports
from cluster_harness.prometheus import Prometheus
from cluster_harness.scrape_jobs import ENDPOINTS_FILE, Json, configuration, monitor_jobs
from cluster_harness.waiting import wait_for

PROMETHEUS = "prometheus"
DISCOVERY = "prometheus-discovery"
_PORT_IN_CLUSTER = 9090  # nobody else listens on it in the private network
_PORT_NOTE = "prometheus-port"


def add_prometheus(
    cluster: Cluster,
    monitors: Iterable[Mapping[str, Any]],
    rule_groups: Sequence[Mapping[str, Any]] = (),
) -> Prometheus:
    """Start Prometheus in the cluster's namespaces with the jobs of PodMonitors and ServiceMonitors, and its rules.

    Monitors see the pods and services of every namespace. ``cluster_prometheus`` finds it again.
    """
    folder = cluster.folder / PROMETHEUS
    jobs = [job for monitor in monitors for job in monitor_jobs(monitor, folder)]
    argv = _prepare(folder, jobs, rule_groups, _PORT_IN_CLUSTER)
    _add_discovery(cluster, folder)
    prometheus = Prometheus(cluster.forward(LOOPBACK, _PORT_IN_CLUSTER))
    cluster.add_component(Component(PROMETHEUS, argv), prometheus.is_ready)
    (cluster.folder / _PORT_NOTE).write_text(str(prometheus.port))
    return prometheus


def _add_discovery(cluster: Cluster, folder: Path) -> None:
    """Start what finds the targets, beside Prometheus, and wait for the first ones."""
    host, port = cluster.inner_address
    arguments = (host, str(port), str(cluster.folder / CREDENTIALS), str(folder))
    argv = (sys.executable, "-m", "cluster_harness.discovery_program", *arguments)
    cluster.add_component(Component(DISCOVERY, argv), (folder / ENDPOINTS_FILE).exists)


def cluster_prometheus(cluster: Cluster) -> Prometheus:
    """Return the Prometheus that ``add_prometheus`` started, perhaps from another process."""
    note = cluster.folder / _PORT_NOTE
    if not note.exists():
        raise HarnessError(f"no Prometheus runs in the cluster of {cluster.folder}")
    return Prometheus(int(note.read_text()))


@contextlib.contextmanager
def run_prometheus(
    folder: Path, jobs: Iterable[Json], rule_groups: Sequence[Mapping[str, Any]] = ()
) -> Iterator[Prometheus]:
    """Run Prometheus on loopback without a cluster, its files in ``folder``; it ends with the block or this process."""
    (port,) = free_ports(LOOPBACK, 1)
    argv = _prepare(folder / PROMETHEUS, jobs, rule_groups, port)
    log = folder / f"{PROMETHEUS}.log"
    with log.open("wb") as output:
        # The kernel ends it with the thread that started it.
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *argv], stdout=output, stderr=output)
    try:
        prometheus = Prometheus(port)
        wait_for(lambda: prometheus.is_ready() or process.poll() is not None, "Prometheus to be ready")
        if process.poll() is not None:
            raise StartError(f"Prometheus ended with status {process.returncode}:\n{log.read_text(errors='replace')}")
        yield prometheus
    finally:
        process.send_signal(signal.SIGKILL)  # its data is thrown away
        process.wait()


def _prepare(
    folder: Path, jobs: Iterable[Json], rule_groups: Sequence[Mapping[str, Any]], port: int
) -> tuple[str, ...]:
    """Write the files of a Prometheus into a new folder and return its command."""
    program = shutil.which(PROMETHEUS)
    if program is None:
        raise HarnessError("no prometheus on PATH; Debian's package is called prometheus")
    folder.mkdir()
    rules = folder / "rules.yml"
    rules.write_text(yaml.safe_dump({"groups": [dict(group) for group in rule_groups]}))
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump(configuration(jobs, [str(rules)]), sort_keys=False))
    return (
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--log.level=warn",
    )
