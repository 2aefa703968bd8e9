"""A real Kubernetes with one node that runs pods, shared by the tests of this folder."""

from collections.abc import Iterator

import pytest

from cluster_harness.cluster import Cluster
from cluster_harness.monitoring import watch_release
from cluster_harness.prometheus import Prometheus
from cluster_harness.tools import Tools
from new_namespaces import new_namespace
from node_clusters import SHARED_VALUES, install_release, new_team, running_cluster
from plain_node import PlainNode
from team import EIGHT_H100, Team


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One cluster for all tests, with the busybox image; whoever stops a component starts it again, or the next."""
    with running_cluster() as running:
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Make a namespace for one test; its removal begins when the test ends and goes on in the background.

    What a failed test has left stopped runs again, before and after: without kubelet no pod could be taken away.
    """
    cluster.restore()
    name = new_namespace(cluster.api, "test")
    yield name
    cluster.restore()
    cluster.api.discard(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def tools(cluster: Cluster) -> Tools:
    """Install the chart once, with short looks at latency budgets, and wait until the node offers its groups."""
    return install_release(cluster, EIGHT_H100, *SHARED_VALUES)


@pytest.fixture
def team(tools: Tools) -> Iterator[Team]:
    """One team with a namespace of its own; when it ends nothing holds groups any more."""
    with new_team(tools) as one:
        yield one
    one.wait_nothing_held()


@pytest.fixture
def plain(cluster: Cluster, namespace: str) -> Iterator[PlainNode]:
    """Plugin and supervisor as plain programs of the node, not started yet; ended with the test."""
    node = PlainNode(cluster, namespace)
    yield node
    node.close()


@pytest.fixture(scope="session")
def prometheus(cluster: Cluster, tools: Tools) -> Prometheus:
    """Run one Prometheus that scrapes the release with the chart's monitors; it ends with the cluster."""
    return watch_release(cluster, tools)
