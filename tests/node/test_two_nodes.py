"""Two real nodes and a quota that is full: when groups of a pod that is being deleted are free again, and when not.

Each node has one H100, of which others hold 96 groups; a Deployment has a pod of 32 on each; the quota allows 64. When
a deleted pod gives its quota back is Kubernetes' own rule, when it gives its groups back only its kubelet knows
(compare kueue#9323).
"""

from collections.abc import Iterator

import pytest

from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.control_plane_spec import ControlPlaneOptions
from cluster_harness.joined_node import JoinedNode
from cluster_harness.node_plan import NodePlan
from cluster_harness.node_spec import NodeOptions
from cluster_harness.tools import Tools
from cta_group_core.names import GATE_PLACEMENT
from meanwhile import meanwhile
from node_clusters import new_team, running_cluster
from two_nodes import GROUPS, OTHERS, SERVER, TwoNodes

_LOOK_SECONDS = 0.1
# A node is lost after ten seconds in place of fifty, since its kubelet tells each second that it is there.
_QUICK_LEASE = {"nodeLeaseDurationSeconds": 4}
_QUICK_LOSS = ("--node-monitor-grace-period=10s", "--node-monitor-period=1s", "--resource-quota-sync-period=1s")
_VALUES = ("gpus.simulated.count=1", "operator.replicas=1", "operator.nodeSelector.kubernetes\\.io/hostname=node-1")


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Cluster, JoinedNode]]:
    """Run a cluster of two nodes that soon notices when one is lost."""
    options = ControlPlaneOptions(extra_flags={"kube-controller-manager": _QUICK_LOSS})
    with running_cluster(NodeOptions(kubelet_config=_QUICK_LEASE), options) as cluster:
        plan = NodePlan(name="node-2", number=2)
        yield cluster, cluster.add_node(NodeOptions(plan, kubelet_config=_QUICK_LEASE))


@pytest.fixture(scope="module")
def chart(pair: tuple[Cluster, JoinedNode]) -> Tools:
    """Install the chart, with the operator on the node that is never lost."""
    return release.install(pair[0], *(part for value in _VALUES for part in ("--set", value)))


@pytest.fixture(scope="module")
def two(pair: tuple[Cluster, JoinedNode], chart: Tools) -> Iterator[TwoNodes]:
    """Give a team a quota of 64 on nodes that others have filled up to 32 groups each; each test says what it has."""
    with new_team(chart) as others, new_team(chart) as team:
        two = TwoNodes(*pair, team)
        two.fill(others)
        team.declare_quota(2 * GROUPS)
        yield two
    two.wait_offered()  # what was lost and came back is free once nobody holds it


def test_a_rollout_is_told_which_pod_gives_the_groups_back(two: TwoNodes) -> None:
    """Without surge each new pod waits for an old one: which, how much and by when is told; it follows on its node."""
    two.deploy(ends_by_flag=True)
    two.wait_served()
    with meanwhile(two.are_ids_disjoint, pause_seconds=_LOOK_SECONDS) as seen:
        two.deploy()
        for _ in two.cluster.nodes:
            ending = two.wait_ending()
            name, until = ending["metadata"]["name"], ending["metadata"]["deletionTimestamp"]
            words = f"groups come back: {GROUPS} when pod {name} has ended, by {until}"
            two.team.wait_explained(f"deployment/{SERVER}", words)
            two.wait_held(ending["spec"]["nodeName"], name)
            assert ending["spec"]["nodeName"] not in two.nodes()
            two.let_go(ending)
        two.wait_served()
    assert set(seen) == {True}


def test_a_lost_node_gives_back_the_quota_and_keeps_the_groups(two: TwoNodes) -> None:
    """A pod is deleted on a node whose kubelet is away: its successor is let in and waits for that very node.

    The quota tells meanwhile what the GPU holds and nobody is charged for. The node's return ends all that.
    """
    two.deploy()
    two.wait_served()
    lost = two.second.node.name
    (victim,) = [pod["metadata"]["name"] for pod in two.pods() if pod["spec"]["nodeName"] == lost]
    two.wait_held(lost, victim)
    with meanwhile(two.are_ids_disjoint, pause_seconds=_LOOK_SECONDS) as seen:
        with two.kubelet_away():
            two.delete(victim)
            two.team.wait_explained(f"deployment/{SERVER}", f"{lost}: unreachable, {OTHERS + GROUPS} groups held there")
            (waiting,) = [pod for pod in two.pods() if "nodeName" not in pod["spec"]]
            assert [gate["name"] for gate in waiting["spec"]["schedulingGates"]] == [GATE_PLACEMENT]
            two.wait_quota(groups=2 * GROUPS, used=2 * GROUPS, uncharged=GROUPS)
            who = f"{GROUPS} by pod {victim} of {two.team.namespace} on {lost}, which is not heard of"
            two.wait_quota_told(f"GPUs hold {GROUPS} groups that used leaves out ({who})")
            assert two.held_on(lost)[victim] == GROUPS
        two.wait_served()
    assert [pod["metadata"]["name"] for pod in two.pods() if pod["spec"]["nodeName"] == lost] == [
        waiting["metadata"]["name"]
    ]
    two.wait_quota(used=2 * GROUPS, uncharged=0)
    assert set(seen) == {True}
