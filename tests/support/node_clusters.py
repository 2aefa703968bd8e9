"""Clusters with a node, releases and teams for tests: how each begins, what is waited for, and how it ends."""

from collections.abc import Iterator
from contextlib import contextmanager

from cluster_harness import release
from cluster_harness.base_images import ensure_busybox_archive
from cluster_harness.cluster import Cluster, ClusterOptions
from cluster_harness.control_plane_spec import ControlPlaneOptions
from cluster_harness.node_spec import NodeOptions
from cluster_harness.project_images import built_images
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from new_namespaces import new_namespace
from team import CTA_NODES, Team, allocatable

SHARED_VALUES = ("--set", "operator.budgetSeconds=2", "--set", "helmTest.timeoutSeconds=10")
"""Of the release that most tests share: short looks at latency budgets, and a test that does not wait for long."""


@contextmanager
def running_cluster(
    node: NodeOptions | None = None, control_plane: ControlPlaneOptions | None = None
) -> Iterator[Cluster]:
    """Run a cluster until the block ends; its node has busybox, and the project's images if they are built."""
    images = (ensure_busybox_archive(), *built_images().values())
    options = ClusterOptions(control_plane or ControlPlaneOptions(), node or NodeOptions(), images)
    with Cluster.start(options) as running:
        yield running


def install_release(cluster: Cluster, groups: int, *values: str) -> Tools:
    """Install the chart with more ``values`` for Helm; return when the node offers the groups and tells its GPUs."""
    tools = release.install(cluster, *values)
    wait_for(lambda: allocatable(tools) == groups, f"the node to offer {groups} groups")
    wait_for(lambda: _is_published(tools), "the CTANode to tell its GPUs")
    return tools


def _is_published(tools: Tools) -> bool:
    return any(node.get("status", {}).get("gpus") for node in tools.api.items(CTA_NODES))


@contextmanager
def new_team(tools: Tools) -> Iterator[Team]:
    """Give a team a namespace; when the block ends all its pods are gone."""
    one = Team(tools, new_namespace(tools.api, "team"))
    yield one
    one.disband()
