"""The demo's cluster: brought up with the chart installed, found again by its note, ended."""

import shutil
from collections.abc import Callable
from pathlib import Path

from cluster_harness.cluster import Cluster
from cluster_harness.errors import HarnessError
from cluster_harness.project_images import ensure_images
from cta_group_demo.tools import PROJECT, Tools

STATE = PROJECT / "build" / "demo"
KUBECONFIG = STATE / "kubeconfig"
RELEASE = "cta-group"
NAMESPACE = "cta-group"
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
    archives = ensure_images()
    say("starting Kubernetes (the first time it is built from source: about ten minutes)")
    cluster = Cluster.start()
    try:
        _remember(cluster)
        say("importing the images")
        for archive in archives.values():
            cluster.import_image(archive)
        tools = Tools(KUBECONFIG)
        say("helm install cta-group charts/cta-group")
        _install(tools)
    except BaseException:
        cluster.close()
        raise
    cluster.detach()
    return cluster, tools


def _remember(cluster: Cluster) -> None:
    STATE.mkdir(parents=True, exist_ok=True)
    _NOTE.write_text(str(cluster.folder))
    shutil.copy(cluster.admin_kubeconfig, KUBECONFIG)


def _install(tools: Tools) -> None:
    tools.helm(
        *("install", RELEASE, str(PROJECT / "charts" / "cta-group")),
        *("--namespace", NAMESPACE, "--create-namespace"),
        *("--values", str(PROJECT / "demo" / "values.yaml"), "--wait", "--timeout", "3m"),
    )
