"""MPS daemons on a real node outlive the supervisor's container, pod and upgrade, and their clients with them."""

from collections.abc import Callable, Iterator

import pytest

from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import ENV_GPU_UUID
from mps_on_node import NodeDaemons
from team import Team


@pytest.fixture
def daemons(cluster: Cluster, tools: Tools) -> NodeDaemons:
    """Look at the daemons of the node."""
    return NodeDaemons(cluster, tools)


@pytest.fixture
def shared_gpu(team: Team) -> str:
    """Let two servers share a GPU and return it."""
    for name in ("first", "second"):
        team.start_server(name)
    team.wait_served("first", "second")
    (gpu,) = {team.environment(f"deployment/{name}")[ENV_GPU_UUID] for name in ("first", "second")}
    return gpu


@pytest.fixture
def upgrade_supervisor(daemons: NodeDaemons) -> Iterator[Callable[[str], None]]:
    """Upgrade the release to another image of the supervisor; it is taken back at the end."""

    def upgrade(image: str) -> None:
        # Not with --wait: that waits for the new pod, which comes when somebody deletes the old one.
        place = ("--namespace", release.NAMESPACE, "--values", str(release.SIMULATED_VALUES))
        daemons.tools.helm("upgrade", release.NAME, str(release.CHART), *place, "--set", f"mps.image={image}")

    yield upgrade
    upgrade("")
    daemons.delete_supervisor()


def test_daemons_are_outside_the_pod_and_their_gpu_is_exclusive(daemons: NodeDaemons, shared_gpu: str) -> None:
    """A daemon is in a cgroup of its own in every hierarchy, and nobody but the MPS server may use its GPU."""
    pid = daemons.pids()[shared_gpu]
    assert all(cgroup.endswith(f"/cta-group-mps/{shared_gpu}") for cgroup in daemons.cgroups_of(pid))
    assert len(daemons.clients(shared_gpu)) == 2
    assert daemons.compute_mode(shared_gpu) == "ExclusiveProcess"


def test_a_deleted_pod_leaves_daemons_and_clients_and_the_next_one_takes_over(
    daemons: NodeDaemons, shared_gpu: str, team: Team
) -> None:
    """While the supervisor is away clients work on; its successor adopts the daemon and lets a larger tenant in."""
    before, clients = daemons.pids()[shared_gpu], daemons.clients(shared_gpu)
    daemons.delete_supervisor()
    assert daemons.pids()[shared_gpu] == before
    assert daemons.clients(shared_gpu) == clients
    team.start_server("third", 64)
    team.wait_served("third")
    assert team.environment("deployment/third")[ENV_GPU_UUID] == shared_gpu
    assert daemons.pids()[shared_gpu] == before
    assert set(clients) < set(daemons.clients(shared_gpu))
    assert restarts(team) == [0, 0, 0]


def test_a_killed_supervisor_leaves_daemons_and_clients(daemons: NodeDaemons, shared_gpu: str, team: Team) -> None:
    """A container that dies hard takes nothing along, and its pod comes back in the same place."""
    before, clients = daemons.pids()[shared_gpu], daemons.clients(shared_gpu)
    supervisor, lives = daemons.supervisor()["metadata"]["name"], _restarts_of(daemons)
    daemons.cluster.exec_in_node(["pkill", "--signal", "KILL", "--full", "cta-group-plugin mps"])
    wait_for(lambda: _restarts_of(daemons) > lives, "the supervisor's container to be started again")
    assert daemons.supervisor()["metadata"]["name"] == supervisor
    assert daemons.pids()[shared_gpu] == before
    assert daemons.clients(shared_gpu) == clients
    assert restarts(team) == [0, 0]


def test_an_upgrade_waits_for_the_pod_to_be_deleted_and_keeps_daemons_even_then(
    daemons: NodeDaemons, shared_gpu: str, team: Team, upgrade_supervisor: Callable[[str], None]
) -> None:
    """Another image changes nothing before somebody deletes the pod, and then neither daemon nor client."""
    before, clients = daemons.pids()[shared_gpu], daemons.clients(shared_gpu)
    image, next_image = "localhost/cta-group-plugin:dev", "localhost/cta-group-plugin:next"
    ctr = [str(daemons.cluster.node.binaries.ctr), "--namespace", "k8s.io", "images"]
    daemons.cluster.exec_in_node([*ctr, "tag", "--force", image, next_image])
    old = daemons.supervisor()["metadata"]["uid"]
    upgrade_supervisor(next_image)
    assert daemons.supervisor()["metadata"]["uid"] == old
    successor = daemons.delete_supervisor()
    assert successor["spec"]["containers"][0]["image"] == next_image
    assert daemons.pids()[shared_gpu] == before
    assert daemons.clients(shared_gpu) == clients
    team.start_pod("third", 32)
    team.wait_running("third")
    assert restarts(team)[:2] == [0, 0]


def test_a_container_waits_for_a_daemon_that_hangs_and_then_runs(
    daemons: NodeDaemons, shared_gpu: str, team: Team
) -> None:
    """While the daemon is silent under living clients a new tenant waits with the reason; nobody fails or is killed."""
    before, clients = daemons.pids()[shared_gpu], daemons.clients(shared_gpu)
    daemons.faults(shared_gpu, "no-answer")
    team.start_pod("third", 32)
    waiting = wait_for(lambda: _why_waiting(team, "third"), "the third tenant to wait")
    assert "was not answered" in waiting
    daemons.faults(shared_gpu)
    team.wait_running("third")
    assert team.environment("pod/third")[ENV_GPU_UUID] == shared_gpu
    assert (daemons.pids()[shared_gpu], daemons.clients(shared_gpu)) == (before, clients)
    assert restarts(team) == [0, 0, 0]


def test_whole_gpus_follow_on_shared_ones(daemons: NodeDaemons, shared_gpu: str, team: Team) -> None:
    """Tenants of whole GPUs take the whole node as soon as the last share has gone: no daemon, mode Default."""
    assert shared_gpu in daemons.pids()
    for name in ("first", "second"):
        team.tools.kubectl("-n", team.namespace, "delete", "deployment", name)
    team.wait_nothing_held()
    names = [f"whole-{number}" for number in range(8)]
    for name in names:
        team.start_pod(name, 128)
    team.wait_running(*names)
    assert daemons.pids() == {}
    assert daemons.compute_mode(shared_gpu) == "Default"
    assert restarts(team) == [0] * 8


def test_without_clients_an_ended_supervisor_leaves_nothing(daemons: NodeDaemons, team: Team) -> None:
    """A pod without a CUDA process holds no daemon back: it is quit, its cgroup removed, the compute mode restored."""
    team.start_pod("idle", 32)
    team.wait_running("idle")
    gpu = team.environment("pod/idle")[ENV_GPU_UUID]
    daemon = daemons.pids()[gpu]
    team.tools.kubectl("-n", team.namespace, "delete", "pod", "idle")
    team.wait_nothing_held()
    daemons.delete_supervisor()
    wait_for(lambda: daemons.compute_mode(gpu) == "Default", "the compute mode to be restored")
    assert daemons.pids().get(gpu) != daemon


def restarts(team: Team) -> list[int]:
    """Return how often each container of the team was started again."""
    return [status["restartCount"] for pod in team.pods() for status in pod["status"]["containerStatuses"]]


def _why_waiting(team: Team, name: str) -> str | None:
    """Return what the kubelet says about a container that does not start; None when it says nothing."""
    for status in team.pod(name)["status"].get("containerStatuses", []):
        waiting = status["state"].get("waiting", {})
        if waiting.get("reason") == "CreateContainerConfigError":
            return str(waiting["message"])
    return None


def _restarts_of(daemons: NodeDaemons) -> int:
    (status,) = daemons.supervisor()["status"]["containerStatuses"]
    return int(status["restartCount"])
