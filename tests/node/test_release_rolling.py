"""A rolling update, an upgrade and a rollback of the whole release on a real node, seen from outside."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bystanders import pods_of, workloads_of
from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_ALIGNMENT, CONDITION_REGISTERED, GATE_PLACEMENT
from meanwhile import meanwhile
from node_clusters import SHARED_VALUES
from team import CTA_NODES, EIGHT_H100, Team, allocatable

_LOOK_SECONDS = 0.05
_VERSION = "7.0.0"
_IMAGES = ("localhost/cta-group-operator", "localhost/cta-group-plugin")
# The pods of the MPS supervisor are replaced by hand only, so whoever upgrades with --wait keeps their image.
_NEXT = ("image.tag=next", "mps.image=localhost/cta-group-plugin:dev", "operator.replanAfterSeconds=31")


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
        tools.kubectl("rollout", "status", "--timeout=180s", *plugin)
        team.start_pod("after", 32)
        team.wait_running("after")
    assert set(seen) == {(EIGHT_H100, "True")}


@pytest.fixture
def next_chart(cluster: Cluster, tools: Tools, tmp_path: Path) -> Iterator[Path]:
    """Make a chart of another version, and another tag of both images; afterwards the release is as it was."""
    ctr = [str(cluster.node.binaries.ctr), "--namespace", "k8s.io", "images", "tag", "--force"]
    for image in _IMAGES:
        cluster.exec_in_node([*ctr, f"{image}:dev", f"{image}:next"])
    chart = tmp_path / "cta-group"
    shutil.copytree(release.CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about | {"version": _VERSION}))
    yield chart
    if installed(tools)["chart"].endswith(_VERSION):  # the test ended before its rollback
        release.upgrade(tools, *SHARED_VALUES)


def release_pods(tools: Tools) -> dict[str, Any]:
    """Return the pods of operator and plugin that are not about to end, by uid."""
    pods = tools.api.items(f"/api/v1/namespaces/{release.NAMESPACE}/pods")
    own = [one for one in pods if one["metadata"]["labels"]["app.kubernetes.io/component"] in {"operator", "plugin"}]
    return {one["metadata"]["uid"]: one for one in own if "deletionTimestamp" not in one["metadata"]}


def templates(tools: Tools) -> dict[str, Any]:
    """Return the pod templates of the release."""
    apps = f"/apis/apps/v1/namespaces/{release.NAMESPACE}"
    found = [one for kind in ("daemonsets", "deployments") for one in tools.api.items(f"{apps}/{kind}")]
    return {one["metadata"]["name"]: one["spec"]["template"] for one in found}


def installed(tools: Tools) -> dict[str, str]:
    """Return what Helm says of the release."""
    (one,) = json.loads(tools.helm("list", "--namespace", release.NAMESPACE, "--output", "json"))
    return dict(one)


def wait_gated(team: Team, name: str) -> None:
    """Wait until the operator has said of a pod that it waits, so that it writes nothing more on it by itself."""
    wait_for(lambda: {"name": GATE_PLACEMENT} in team.pod(name)["spec"].get("schedulingGates", []), f"{name} gated")
    team.wait_explained(f"pod/{name}", "1024")


def test_an_upgrade_changes_no_pod_and_no_template_of_tenants(tools: Tools, team: Team, next_chart: Path) -> None:
    """Image, arguments and chart version change, and go back; servers run on as admission made them, gates stay."""
    team.start_server("server", 32)
    team.start_pod("steady", 32)
    team.wait_served("server")
    team.wait_running("steady")
    team.start_pod("waiting", EIGHT_H100)
    wait_gated(team, "waiting")
    assert ANNOTATION_ALIGNMENT in team.server_pod("server")["metadata"]["annotations"]
    pods, workloads = pods_of(team), workloads_of(team)
    assert len(workloads) == 2, "one Deployment and its one ReplicaSet"
    before, made_before, revision = release_pods(tools), templates(tools), installed(tools)["revision"]

    sets = [argument for setting in _NEXT for argument in ("--set", setting)]
    release.upgrade(tools, *SHARED_VALUES, *sets, chart=next_chart)
    upgraded, made = release_pods(tools), templates(tools)
    assert not before.keys() & upgraded.keys()
    assert {one["spec"]["containers"][0]["image"].rpartition(":")[2] for one in upgraded.values()} == {"next"}
    assert installed(tools)["chart"] == f"cta-group-{_VERSION}"
    assert (pods_of(team), workloads_of(team)) == (pods, workloads)

    release.upgrade(tools, *SHARED_VALUES, *sets, chart=next_chart)
    assert (release_pods(tools).keys(), templates(tools)) == (upgraded.keys(), made), "same values: nothing is replaced"
    team.start_pod("after", 32)
    team.wait_running("after")

    place = ("--namespace", release.NAMESPACE, "--wait", "--timeout", "3m")
    tools.helm("rollback", release.NAME, revision, *place)
    assert templates(tools) == made_before
    now = pods_of(team)
    assert (now.pop("after")["containers"][0][1], now, workloads_of(team)) == (0, pods, workloads)

    for kind, name in (("deployment", "server"), ("pod", "steady"), ("pod", "after")):
        tools.kubectl("-n", team.namespace, "delete", kind, name, "--wait=false")
    team.wait_running("waiting")
