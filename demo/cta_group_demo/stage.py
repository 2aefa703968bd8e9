"""The demo's cluster: brought up with the chart installed, found again by its note, ended."""

import shutil
from collections.abc import Callable
from pathlib import Path

from cluster_harness import release
from cluster_harness.cluster import Cluster, ClusterOptions
from cluster_harness.errors import HarnessError
from cluster_harness.project_images import ensure_images
from cluster_harness.tools import PROJECT, Tools

STATE = PROJECT / "build" / "demo"
KUBECONFIG = STATE / "kubeconfig"
_NOTE = STATE / "cluster-folder"

Say = Callable[[str], None]


def find_cluster() -> Cluster | None:
    """Return the demo's cluster where one runs."""
    if not _NOTE.exists():
        return None
    try:
        return Cluster.attach(Path(_NOTE.read_text()))
    except (HarnessError, OSError):
        return None


def end() -> bool:
    """End the demo's cluster and forget it; return whether one ran."""
    cluster = find_cluster()
    if cluster is not None:
        cluster.close()
    shutil.rmtree(STATE, ignore_errors=True)
    return cluster is not None


def begin(say: Say) -> tuple[Cluster, Tools]:
    """Build what is missing, start a cluster that outlives this process, and install the chart on it."""
    if end():
        say("ended the demo that was still running")
    say("building the images (no time when they are built)")
    images = tuple(ensure_images().values())
    say("starting Kubernetes (the first time it is built from source: about ten minutes)")
    cluster = Cluster.start(ClusterOptions(images=images))
    try:
        _remember(cluster)
        say("helm install cta-group charts/cta-group")
        tools = release.install(cluster, kubeconfig=KUBECONFIG)
    except BaseException:
        cluster.close()
        raise
    cluster.detach()
    return cluster, tools


def _remember(cluster: Cluster) -> None:
    STATE.mkdir(parents=True, exist_ok=True)
    _NOTE.write_text(str(cluster.folder))
    shutil.copy(cluster.admin_kubeconfig, KUBECONFIG)
