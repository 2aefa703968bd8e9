"""An idle node of eight GPUs is not blocked by a holder that is gone: operator cut off, plugin silent, operator new."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from chart_rendering import NAMESPACE
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from gpu_cluster import OURS, GpuCluster, condition, held
from node_life import confirm, heard_of, lose
from operator_fixtures import cluster, kinds, operator_kubeconfig
from operator_process import running_operator
from relay import Relay

__all__ = ["cluster", "kinds", "operator_kubeconfig"]

pytestmark = pytest.mark.usefixtures("kinds")

LONG_AGO = 20
"""Minutes, of a CTANode that is stale by the default of 15."""


@pytest.fixture
def relay(control_plane: ControlPlane) -> Iterator[Relay]:
    """Return a way to the API server that can be blocked."""
    made = Relay(int(control_plane.server.rpartition(":")[2]))
    yield made
    made.unblock()
    made.close()


@pytest.fixture
def relayed(operator_kubeconfig: Path, relay: Relay, tmp_path: Path) -> Path:
    """Return the operator's kubeconfig with that way in it."""
    content = yaml.safe_load(operator_kubeconfig.read_text())
    content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{relay.port}"
    path = tmp_path / "relayed.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


def start_predictor(cluster: GpuCluster, minutes_ago: int | None = None) -> str:
    """Have a pod of 1024 run on a node of its own; return the node."""
    node = cluster.add_node("eight", *[[]] * 8)
    cluster.create_pod("predictor", 1024)
    assert cluster.wait_bound("predictor") == node
    publish_full(cluster, node, minutes_ago)
    cluster.create_pod("other", 8)
    cluster.wait_told("Pod", "other", "GPU 0-7: 0 of 128 each")
    return node


def publish_full(cluster: GpuCluster, node: str, minutes_ago: int | None) -> None:
    """Have the plugin report that the pod holds all eight GPUs."""
    tenants = [[held(128, "predictor", cluster.namespace)]] * 8
    cluster.publish(node, *tenants, minutes_ago=minutes_ago)


def replace_predictor(cluster: GpuCluster) -> None:
    """Delete it at once, as after a lost node, and create the next."""
    pods = f"/api/v1/namespaces/{cluster.namespace}/pods"
    for name in ("predictor", "other"):
        cluster.api.delete(f"{pods}/{name}?gracePeriodSeconds=0")
    cluster.create_pod("next", 1024)


def test_the_operator_was_cut_off(cluster: GpuCluster, relay: Relay, relayed: Path, tmp_path: Path) -> None:
    """What happened while nothing got through is known when it does again."""
    with running_operator(relayed, NAMESPACE, tmp_path) as operator:
        node = start_predictor(cluster, minutes_ago=0)
        with heard_of(cluster.api, node):
            relay.block()
            replace_predictor(cluster)
            cluster.publish(node, *[[]] * 8, minutes_ago=0)
            wait_for(lambda: not operator.leads, "the operator to notice")
            assert cluster.node_of("next") is None
            relay.unblock()
            assert cluster.wait_bound("next") == node


def test_the_plugin_is_silent(cluster: GpuCluster, operator_kubeconfig: Path, tmp_path: Path) -> None:
    """A CTANode that is old is shown as stale, and its holder counts until the API server knows none of that name."""
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path, "--stale-node-seconds=10") as operator:
        node = start_predictor(cluster, minutes_ago=0)
        with heard_of(cluster.api, node):

            def reporting() -> tuple[str, str]:
                return condition(cluster.api.get(f"{OURS}/ctanodes/{node}")["status"], "Reporting")

            wait_for(lambda: reporting() == ("False", "PluginSilent"), "the condition")
            wait_for(lambda: operator.metric("cta_group_stale_nodes") == 1, "the figure")
            cluster.wait_told("Pod", "other", "GPU 0-7: 0 of 128 each", "its plugin has not reported since")
            replace_predictor(cluster)
            assert cluster.wait_bound("next") == node
            confirm(cluster.api, node)
            wait_for(lambda: reporting()[0] == "True", "the condition to turn")


def test_the_operator_is_new(cluster: GpuCluster, operator_kubeconfig: Path, tmp_path: Path) -> None:
    """One that starts goes by what is there: an old CTANode, and a holder that was deleted while nobody ran."""
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path):
        node = start_predictor(cluster, minutes_ago=0)
    with heard_of(cluster.api, node):
        publish_full(cluster, node, LONG_AGO)
        replace_predictor(cluster)
        with running_operator(operator_kubeconfig, NAMESPACE, tmp_path):
            assert cluster.wait_bound("next") == node


def test_a_node_that_is_lost_keeps_what_it_held(cluster: GpuCluster, operator_kubeconfig: Path, tmp_path: Path) -> None:
    """A pod that was deleted from an unreachable node holds its groups until that node is back and says otherwise."""
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path):
        node = start_predictor(cluster, minutes_ago=0)
        lose(cluster.api, node)
        publish_full(cluster, node, LONG_AGO)
        replace_predictor(cluster)
        cluster.wait_told("Pod", "next", "GPU 0-7: 0 of 128 each")
        assert cluster.node_of("next") is None
        with heard_of(cluster.api, node):
            cluster.publish(node, *[[]] * 8, minutes_ago=0)
            assert cluster.wait_bound("next") == node
