"""Slices as CDI devices on a real node: containerd applies what the plugin described, and the pod cannot undo it."""

from collections.abc import Iterator

import pytest

from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import (
    ENV_COUNT,
    ENV_GPU_UUID,
    ENV_MPS_MEMORY_LIMIT,
    ENV_MPS_PERCENTAGE,
    ENV_MPS_PIPE_DIRECTORY,
    ENV_VISIBLE_DEVICES,
)
from cta_group_core.plan import plan_slice
from cta_group_core.profiles import profile_named
from team import Team

_OWN_LIMITS = {
    ENV_MPS_PERCENTAGE: "100",
    ENV_MPS_MEMORY_LIMIT: "0=80G",
    ENV_MPS_PIPE_DIRECTORY: "/elsewhere",
    ENV_VISIBLE_DEVICES: "all",
}


@pytest.fixture(scope="module")
def with_cdi(tools: Tools) -> Iterator[Tools]:
    """Switch the release to CDI devices for these tests."""
    release.upgrade(tools, "--set", "deviceList=cdi")
    yield tools
    release.upgrade(tools)


@pytest.fixture
def defiant(with_cdi: Tools, team: Team) -> Team:  # noqa: ARG001 - needed for what it does
    """Start a pod of 32 that sets every limit itself."""
    team.start_pod("defiant", 32, env=_OWN_LIMITS)
    team.wait_running("defiant")
    return team


def check_quarter_of_an_h100(environment: dict[str, str]) -> None:
    """Check that a process has the limits of 32 groups and nothing that its pod said."""
    uuid = environment[ENV_GPU_UUID]
    assert environment[ENV_MPS_PERCENTAGE] == "25"
    assert environment[ENV_MPS_MEMORY_LIMIT] == f"{uuid}={plan_slice(profile_named('h100-sxm'), 32).memory_mib}M"
    assert environment[ENV_MPS_PIPE_DIRECTORY].endswith(f"{uuid}/pipe")
    assert environment[ENV_VISIBLE_DEVICES] == "void"


def test_a_pod_that_sets_its_own_limits_runs_with_those_of_its_slice(defiant: Team) -> None:
    """Its process has the slice's values, and the GPU's pipe folder is where they say."""
    environment = defiant.environment("pod/defiant")
    check_quarter_of_an_h100(environment)
    pipe = environment[ENV_MPS_PIPE_DIRECTORY]
    mounts = defiant.tools.kubectl("-n", defiant.namespace, "exec", "defiant", "--", "cat", "/proc/mounts")
    assert [line.split()[3].split(",")[0] for line in mounts.splitlines() if line.split()[1] == pipe] == ["ro"]


def test_two_whole_gpus_are_two_devices_with_the_sum_of_their_numbers(with_cdi: Tools, team: Team) -> None:
    """256 groups: both UUIDs, no limit, no pipe folder."""
    team.start_pod("large", 256)
    team.wait_running("large")
    environment = team.environment("pod/large")
    assert environment[ENV_COUNT] == "256"
    assert len(set(environment[ENV_GPU_UUID].split(","))) == 2
    assert not [name for name in environment if name.startswith("CUDA_MPS")]
    assert with_cdi.kubectl("-n", team.namespace, "exec", "large", "--", "cat", "/proc/mounts").count("cta-group") == 0


def test_the_folder_emptied_as_by_a_reboot_is_filled_before_a_container_restarts(
    defiant: Team, cluster: Cluster
) -> None:
    """Kubelet replays the names it stored; what they mean is there again, with the plugin restarted or not."""
    folder = "/var/run/cdi"
    for plugin_too in (False, True):
        cluster.exec_in_node(["sh", "-c", f"rm {folder}/ctagroup.dev-slice_*.json"])
        if plugin_too:
            _restart_plugin(defiant.tools)
        _restart_container(defiant, "defiant")
        check_quarter_of_an_h100(defiant.environment("pod/defiant"))
    assert cluster.exec_in_node(["sh", "-c", f"ls {folder} | wc -l"]).strip() == "8"


def test_a_pod_from_before_the_switch_restarts_as_it_was(with_cdi: Tools, team: Team) -> None:
    """Kubelet stored an answer by environment; after the switch to CDI devices the container starts with it again."""
    release.upgrade(with_cdi)
    team.start_pod("old", 32)
    team.wait_running("old")
    before = team.environment("pod/old")
    release.upgrade(with_cdi, "--set", "deviceList=cdi")
    _restart_container(team, "old")
    assert team.environment("pod/old") == before
    assert before[ENV_MPS_PERCENTAGE] == "25"


def _restart_plugin(tools: Tools) -> None:
    tools.kubectl("-n", release.NAMESPACE, "rollout", "restart", "daemonset/cta-group-plugin")
    tools.kubectl("-n", release.NAMESPACE, "rollout", "status", "daemonset/cta-group-plugin", "--timeout=180s")


def _restart_container(team: Team, name: str) -> None:
    """End the container's process and wait until kubelet has started it again."""
    before = _restarts(team, name)
    team.tools.kubectl("-n", team.namespace, "exec", name, "--", "kill", "-TERM", "1")
    wait_for(lambda: _restarts(team, name) > before, f"kubelet to restart {name}")
    team.wait_running(name)


def _restarts(team: Team, name: str) -> int:
    statuses = team.pod(name)["status"].get("containerStatuses", [])
    return sum(status["restartCount"] for status in statuses)
