"""The API server reaches the operator at another port and on the node's network, where it can reach no pods."""

from typing import Any

from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_ALIGNMENT, LABEL_REQUESTS
from node_clusters import SHARED_VALUES
from rehearsing import wait_gated
from team import Team

_WEBHOOK_PORT = 18443
_SETTINGS = ("hostNetwork=true", "metricsPort=18444", "replicas=1")
_PODS = f"/api/v1/namespaces/{release.NAMESPACE}/pods?labelSelector=app.kubernetes.io/component%3Doperator"


def test_pods_come_to_an_operator_on_the_node_s_network(tools: Tools, team: Team, cluster: Cluster) -> None:
    """One replica is left, at the node's own address and another port; pods are labelled and their arguments fitted."""
    changed = [f"operator.{one}" for one in _SETTINGS]
    try:
        release.upgrade(tools, *SHARED_VALUES, "--set", ",".join([*changed, f"webhook.port={_WEBHOOK_PORT}"]))
        operator = wait_for(lambda: only_operator(cluster), "one operator to be left")
        assert operator["spec"]["hostNetwork"]
        assert operator["status"]["podIP"] == operator["status"]["hostIP"]
        ports = operator["spec"]["containers"][0]["ports"]
        assert _WEBHOOK_PORT in [one["hostPort"] for one in ports]
        wait_gated(tools, team.namespace)
        team.start_server("server")
        team.wait_served("server")
        metadata = team.server_pod("server")["metadata"]
        assert LABEL_REQUESTS in metadata["labels"]
        assert ANNOTATION_ALIGNMENT in metadata["annotations"]
    finally:
        release.upgrade(tools, *SHARED_VALUES)
        wait_gated(tools, team.namespace)


def only_operator(cluster: Cluster) -> dict[str, Any] | None:
    """Return the operator's pod when it is the only one."""
    found = cluster.api.items(_PODS)
    return found[0] if len(found) == 1 else None
