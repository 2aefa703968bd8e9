"""Uninstalling on a real node, also when it is in a bad state: it ends, and nothing waits or runs because of us.

A cluster of its own: what these tests do ends the release.
"""

import sys
from collections.abc import Iterator

import pytest

from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import ENV_GPU_UUID
from cta_group_operator.cli import main
from cta_group_plugin.mps.program import SIMULATED_MODULE
from mps_on_node import MPS_ROOT
from node_clusters import install_release, new_team, running_cluster
from team import Team
from uninstalling import ONE_H100, Doomed

_SMALL = ("--set", "gpus.simulated.count=1", "--set", "operator.replicas=1")
_DEADLINE_SECONDS = 15
_KINDS = ("ctaquotas.ctagroup.dev", "ctanodes.ctagroup.dev", "ctaworkloads.ctagroup.dev")


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[Cluster]:
    """Start a cluster for the tests of this file alone."""
    with running_cluster() as running:
        yield running


@pytest.fixture
def installed(own_cluster: Cluster) -> Iterator[Tools]:
    """Install the chart with one simulated H100; afterwards no release is left, and the node takes pods again."""
    deadline = f"uninstall.releaseGates.deadlineSeconds={_DEADLINE_SECONDS}"
    tools = install_release(own_cluster, ONE_H100, *_SMALL, "--set", deadline)
    yield tools
    tools.helm("uninstall", release.NAME, "--namespace", release.NAMESPACE, "--ignore-not-found", "--no-hooks")
    own_cluster.api.patch(f"/api/v1/nodes/{own_cluster.node.name}", {"spec": {"unschedulable": None, "taints": None}})


@pytest.fixture
def team(installed: Tools) -> Iterator[Team]:
    """Give a team a namespace; its pods are gone when the test ends."""
    with new_team(installed) as one:
        yield one


@pytest.fixture
def doomed(own_cluster: Cluster, team: Team) -> Doomed:
    """Return the release with pods that run and pods that wait."""
    one = Doomed(own_cluster, team.tools, team)
    one.fill()
    return one


def ends_well(doomed: Doomed, before: dict[str, tuple[str, int]]) -> None:
    """Check what holds after every uninstall: nothing of ours is left on the node, and what ran runs on."""
    doomed.wait_gone()
    assert doomed.containers() == before
    assert doomed.daemons.pids() == {}, "no daemon without clients"
    assert doomed.sockets() == []
    gpu = doomed.team.environment("pod/running-0")[ENV_GPU_UUID]
    assert doomed.daemons.compute_mode(gpu) == "Default"


def test_on_a_cluster_whose_nodes_are_all_cordoned_and_tainted(doomed: Doomed) -> None:
    """The Job runs there all the same: gates go, running pods stay, and Helm prints what was done and what stays."""
    before = doomed.containers()
    doomed.tools.kubectl("cordon", doomed.cluster.node.name)
    doomed.tools.kubectl("taint", "node", doomed.cluster.node.name, "maintenance=true:NoSchedule")
    ended = doomed.uninstall()
    assert ended.status == 0, ended.words
    assert "taken off 3 pods" in ended.words
    assert "kubelet goes on listing nvidia.com/cta-group" in ended.words
    assert doomed.gated() == []
    ends_well(doomed, before)
    doomed.team.start_pod("after", 32)
    assert doomed.gated() == [], "nobody gates a pod any more"


def test_with_an_image_that_does_not_exist(doomed: Doomed, capsys: pytest.CaptureFixture[str]) -> None:
    """After an upgrade to a wrong image the Job cannot run: all is deleted, Helm says so, one command does the rest."""
    before = doomed.containers()
    chart = str(release.CHART)
    place = ("--namespace", release.NAMESPACE, "--reuse-values")
    doomed.tools.helm("upgrade", release.NAME, chart, *place, "--set", "operator.image=localhost/none:1")
    ended = doomed.uninstall()
    assert "release-gates" in ended.words
    assert "Job Failed" in ended.words, "the Job's own deadline ended it, not Helm's"
    again = doomed.uninstall("--ignore-not-found")
    assert again.status == 0, again.words
    assert doomed.gated() == ["waiting-0", "waiting-1", "waiting-2"]
    assert main(["release-gates", f"--kubeconfig={doomed.tools.kubeconfig}"]) == 0
    assert "taken off 3 pods" in capsys.readouterr().out
    assert doomed.gated() == []
    ends_well(doomed, before)


def test_after_somebody_deleted_the_operator(doomed: Doomed) -> None:
    """The Job needs no operator; with Helm 3 too."""
    before = doomed.containers()
    doomed.tools.kubectl("-n", release.NAMESPACE, "delete", "deployment", "cta-group-operator", "--timeout=180s")
    ended = doomed.uninstall(program="helm3")
    assert ended.status == 0, ended.words
    assert doomed.gated() == []
    ends_well(doomed, before)


def test_after_somebody_deleted_the_kinds(doomed: Doomed) -> None:
    """Without a single kind of the project the uninstall is the same, and the kinds come back with the next install."""
    before = doomed.containers()
    doomed.tools.kubectl("delete", "crd", *_KINDS, "--timeout=180s")
    ended = doomed.uninstall()
    assert ended.status == 0, ended.words
    assert doomed.gated() == []
    ends_well(doomed, before)


def test_servers_with_cuda_processes_keep_their_daemon_until_they_end(own_cluster: Cluster, team: Team) -> None:
    """A daemon with clients is never ended under them; when they have gone, what the chart's README says ends it."""
    doomed = Doomed(own_cluster, team.tools, team)
    doomed.wait_admission()
    team.start_server("server")
    team.wait_served("server")
    gpu = team.environment("deployment/server")[ENV_GPU_UUID]
    before, clients = doomed.daemons.pids(), doomed.daemons.clients(gpu)
    ended = doomed.uninstall()
    assert ended.status == 0, ended.words
    doomed.wait_gone()
    assert doomed.daemons.pids() == before
    assert doomed.daemons.clients(gpu) == clients
    assert team.server_pod("server")["status"]["containerStatuses"][0]["restartCount"] == 0
    assert doomed.daemons.compute_mode(gpu) == "ExclusiveProcess"
    team.tools.kubectl("-n", team.namespace, "delete", "deployment", "server", "--cascade=foreground", "--timeout=180s")
    assert "echo quit | CUDA_MPS_PIPE_DIRECTORY=$gpu/pipe" in (release.CHART / "README.md").read_text()
    control = f"CUDA_MPS_PIPE_DIRECTORY={MPS_ROOT}/{gpu}/pipe {sys.executable} -m {SIMULATED_MODULE}"
    own_cluster.exec_in_node(["sh", "-c", f"echo quit | {control}"])
    wait_for(lambda: not doomed.daemons.pids(), "the daemon to end")
