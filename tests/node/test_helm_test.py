"""``helm test`` of the chart on a real node, by both versions of Helm: all is well, or admission is not reached."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chart_rendering import HELM_VERSIONS
from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.tools import Ended, Tools
from rehearsing import wait_gated

_WEBHOOK_PORT = "9443"
_LOGS = ("-n", release.NAMESPACE, "logs", f"job/{release.NAME}-test")
_PLACES = (
    f"/apis/batch/v1/namespaces/{release.NAMESPACE}/jobs",
    f"/api/v1/namespaces/{release.NAMESPACE}/serviceaccounts",
    *(f"/apis/rbac.authorization.k8s.io/v1/{kind}" for kind in ("clusterroles", "clusterrolebindings")),
    *(f"/apis/rbac.authorization.k8s.io/v1/{kind}" for kind in ("roles", "rolebindings")),
)


def helm_test(tools: Tools, program: str) -> Ended:
    """Test the release as a person does."""
    return tools.attempt(program, "test", release.NAME, "--namespace", release.NAMESPACE, "--timeout", "2m")


def left(tools: Tools) -> set[str]:
    """Return the paths of what a test made and did not take away."""
    label = "?labelSelector=app.kubernetes.io%2Fcomponent%3Dtest"
    return {place for place in _PLACES if tools.api.items(f"{place}{label}")}


@contextmanager
def dropped(cluster: Cluster, port: str) -> Iterator[None]:
    """Let packets to a port of any pod vanish, as a firewall between control plane and nodes does."""
    rule = ("OUTPUT", "--protocol", "tcp", "--dport", port, "--jump", "DROP")
    cluster.exec_in_node(["iptables", "--wait", "--insert", *rule])
    try:
        yield
    finally:
        cluster.exec_in_node(["iptables", "--wait", "--delete", *rule])


@pytest.mark.parametrize("program", HELM_VERSIONS, ids=HELM_VERSIONS.values())
def test_a_release_that_works_passes_and_nothing_of_the_test_stays(tools: Tools, program: str) -> None:
    """No account, no right and no Job is left, and nothing was stored where a pod was rehearsed."""
    wait_gated(tools, "default")
    ended = helm_test(tools, program)
    assert ended.status == 0, ended.words
    if program == "helm":  # the other one prints no log, and neither does of one that failed
        assert "comes before the webhook and is gated" in ended.words
        assert "leads the operator" in ended.words
        assert "1 of 1 nodes with the plugin offer 1024 groups" in ended.words
    assert left(tools) == set()
    assert tools.api.items("/api/v1/namespaces/default/pods") == []


def test_where_the_webhook_is_not_reached_both_test_and_doctor_say_what_to_do(cluster: Cluster, tools: Tools) -> None:
    """Packets vanish: the test fails with the ports to open; the next one, when they are open, takes all away."""
    wait_gated(tools, "default")
    with dropped(cluster, _WEBHOOK_PORT):
        ends = {program: (helm_test(tools, program), tools.kubectl(*_LOGS)) for program in HELM_VERSIONS}
        assert "without the webhook" in tools.cta("doctor")
    for ended, told in ends.values():
        assert ended.status != 0
        assert "cta-group-test" in ended.words, "the Job, whose log is to be read"
        assert "the API server admitted it in" in told
        assert "without the webhook" in told
        assert "webhook.port: 10250" in told
        assert "offer 1024 groups" in told, "what is well is said too"
    wait_gated(tools, "default")
    ended = helm_test(tools, "helm3")
    assert ended.status == 0, ended.words
    assert left(tools) == set()
