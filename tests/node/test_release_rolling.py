"""A rolling update of the whole release on a real node, seen from outside."""

from cluster_harness.cluster import Cluster
from cluster_harness.tools import Tools
from cta_group_core.names import CONDITION_REGISTERED
from meanwhile import meanwhile
from team import CTA_NODES, EIGHT_H100, Team, allocatable

_LOOK_SECONDS = 0.05


def test_upgrade_of_the_release_leaves_no_gap(tools: Tools, team: Team, cluster: Cluster) -> None:
    """Both pods of the plugin run for a moment: the node never offers less, and is never said not to be registered."""

    def look() -> tuple[int, str]:
        conditions = cluster.api.get(f"{CTA_NODES}/{cluster.node.name}")["status"]["conditions"]
        (registered,) = [one["status"] for one in conditions if one["type"] == CONDITION_REGISTERED]
        return allocatable(tools), registered

    plugin = ("-n", "cta-group", "daemonset/cta-group-plugin")
    team.start_pod("steady", 32)
    team.wait_running("steady")
    with meanwhile(look, pause_seconds=_LOOK_SECONDS) as seen:
        tools.kubectl("rollout", "restart", *plugin)
        for number in range(4):
            team.start_pod(f"passing-{number}", 32)
            team.wait_running(f"passing-{number}")
        tools.kubectl("rollout", "status", "--timeout=90s", *plugin)
        team.start_pod("after", 32)
        team.wait_running("after")
    assert set(seen) == {(EIGHT_H100, "True")}
