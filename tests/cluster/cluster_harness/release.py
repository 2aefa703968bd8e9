"""The chart on a cluster with simulated GPUs, installed by Helm as a user would, from the images of this checkout."""

from pathlib import Path

from cluster_harness.cluster import Cluster
from cluster_harness.project_images import ensure_images
from cluster_harness.tools import PROJECT, ToolError, Tools
from cluster_harness.waiting import wait_for

NAME = "cta-group"
NAMESPACE = "cta-group"
CHART = PROJECT / "charts" / "cta-group"
_LOG_LINES = 15
SIMULATED_VALUES = PROJECT / "demo" / "values.yaml"


def install(cluster: Cluster, *more: str, kubeconfig: Path | None = None) -> Tools:
    """Load the project's images, install the chart with ``more`` arguments for Helm, and return the user's tools."""
    for archive in ensure_images().values():
        cluster.import_image(archive)
    tools = Tools(kubeconfig or cluster.admin_kubeconfig, cluster.api)
    helm(tools, "install", "--create-namespace", *more)
    return tools


def upgrade(tools: Tools, *more: str, chart: Path = CHART) -> None:
    """Upgrade the release to a chart, this checkout's by default, with ``more`` arguments for Helm.

    Nothing of before runs when it returns.
    """
    helm(tools, "upgrade", *more, chart=chart)
    wait_for(lambda: not _ending(tools), "the pods of before to be gone")


def _ending(tools: Tools) -> list[str]:
    """Return the release's pods that are being deleted: Helm waits for new ones only, and old ones go on until then."""
    pods = [pod["metadata"] for pod in tools.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods")]
    return [pod["name"] for pod in pods if "deletionTimestamp" in pod]


def helm(tools: Tools, verb: str, *more: str, chart: Path = CHART) -> None:
    """Install or upgrade the release with the values of simulated GPUs and wait until everything of it is ready."""
    place = ("--namespace", NAMESPACE, "--values", str(SIMULATED_VALUES), "--wait", "--timeout", "3m")
    try:
        tools.helm(verb, NAME, str(chart), *place, *more)
    except ToolError as error:
        raise ToolError(f"{error}\n{_what_runs(tools)}") from error


def _what_runs(tools: Tools) -> str:
    """Return the release's pods and the end of the log of each: Helm only says that something is not ready."""
    texts = [tools.kubectl("-n", NAMESPACE, "get", "pods", "-o", "wide")]
    for pod in tools.objects("pods", "-n", NAMESPACE)["items"]:
        name = pod["metadata"]["name"]
        try:
            log = tools.kubectl("-n", NAMESPACE, "logs", name, "--all-containers", f"--tail={_LOG_LINES}")
        except ToolError as error:
            log = str(error)
        texts.append(f"{name}:\n{log}")
    return "\n".join(texts)
