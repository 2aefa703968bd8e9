"""A kubelet with a folder of its own: device plugins stay at the default place, pod-resources move with it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.node_plan import NodePlan
from cluster_harness.node_spec import NodeOptions
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from doctor_in_pod import findings_in_pod
from node_clusters import install_release, new_team, running_cluster
from team import CTA_NODES, Team, gpus

_ROOT = "/var/lib/k0s/kubelet"
_LOOKED_FOR = "/var/lib/kubelet/pod-resources/kubelet.sock"
_ONE_GPU = ("--set", "gpus.simulated.count=1", "--set", "operator.placement=off", "--set", "operator.replicas=1")


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Cluster]:
    """Start a cluster whose kubelet has the folder that k0s gives it."""
    with running_cluster(NodeOptions(plan=NodePlan(kubelet_root=_ROOT))) as running:
        yield running


@pytest.fixture(scope="module")
def by_default(elsewhere: Cluster) -> Tools:
    """Install the chart as if kubelet's folder were the usual one."""
    return install_release(elsewhere, 128, *_ONE_GPU)


@pytest.fixture
def team(by_default: Tools) -> Iterator[Team]:
    """Give a team a namespace."""
    with new_team(by_default) as one:
        yield one


def test_the_folder_that_is_missed_is_named_and_a_value_puts_it_right(by_default: Tools, team: Team) -> None:
    """With defaults groups are offered, nothing is called free, a pod waits, and all who are asked name the path."""
    team.start_pod("first", 32)
    wait_for(lambda: _LOOKED_FOR in _waiting(team.pod("first")), "the pod to say what it waits for")
    told = wait_for(lambda: _condition(by_default, "False"), "the condition")
    assert _LOOKED_FOR in told["message"]
    assert "kubelet.rootDir" in told["message"]
    # 32 are held, and nobody knows it.
    wait_for(lambda: gpus(by_default)[0]["free"] == 0, "nothing to be called free")
    (in_pod,) = wait_for(lambda: _errors_in_pod(by_default), "an error to be found in the pod")
    assert _LOOKED_FOR in in_pod["sentence"]
    assert f"such as {_ROOT}" in in_pod["remedy"]
    _wait_found_outside(by_default, "condition HoldersKnown")

    release.upgrade(by_default, *_ONE_GPU, "--set", f"kubelet.rootDir={_ROOT}")
    wait_for(lambda: _condition(by_default, "True"), "the condition")
    team.wait_running("first")
    wait_for(lambda: _holders(by_default) == [("first", 32)], "the holder to be known")
    wait_for(lambda: _is_well_in_pod(by_default), "the doctor in the pod to find nothing")
    by_default.kubectl("-n", team.namespace, "delete", "pod", "first", "--timeout=180s")
    team.start_pod("whole", 128)
    team.wait_running("whole")
    wait_for(lambda: _holders(by_default) == [("whole", 128)], "the holder of the whole GPU")
    assert [gpu["free"] for gpu in gpus(by_default)] == [0]


def test_a_folder_without_kubelet_s_socket_is_named_too(by_default: Tools) -> None:
    """Device plugins stay at the default place; whoever moves them along is told by the plugin, which runs."""
    wrong = f"{_ROOT}/device-plugins"
    values = ("--set", f"kubelet.rootDir={_ROOT}", "--set", f"kubelet.devicePluginsDir={wrong}")
    place = ("--namespace", release.NAMESPACE, "--values", str(release.SIMULATED_VALUES))
    by_default.helm("upgrade", release.NAME, str(release.CHART), *place, *_ONE_GPU, *values)  # it is not ready there

    def is_told() -> bool:
        told = _condition(by_default, "False", "Registered") or {}
        return f"{wrong}/kubelet.sock is not there" in told.get("message", "")

    wait_for(is_told, "the condition to name the path")
    # The plugin of before runs on, since its successor is not ready, and tells of itself until that one tells again.
    found = _wait_found_outside(by_default, "condition Registered")
    assert "kubelet.devicePluginsDir" in found["remedy"]
    release.upgrade(by_default, *_ONE_GPU, "--set", f"kubelet.rootDir={_ROOT}")
    _restart_plugin(by_default)  # the one of before has no news, and would tell again only within a minute
    wait_for(lambda: _condition(by_default, "True", "Registered"), "the condition")


def _errors_in_pod(tools: Tools) -> list[dict[str, Any]]:
    return [one for one in findings_in_pod(tools) if one["severity"] == "error"]


def _is_well_in_pod(tools: Tools) -> bool:
    return all(one["severity"] == "info" for one in findings_in_pod(tools))


def _restart_plugin(tools: Tools) -> None:
    plugin = ("-n", release.NAMESPACE, "daemonset/cta-group-plugin")
    tools.kubectl("rollout", "restart", *plugin)
    tools.kubectl("rollout", "status", "--timeout=180s", *plugin)


def _found_outside(tools: Tools, subject: str) -> dict[str, str] | None:
    """Return what ``kubectl cta doctor`` finds about a subject."""
    findings = json.loads(tools.cta("doctor", "-o", "json"))["findings"]
    return next((one for one in findings if one["subject"] == subject), None)


def _wait_found_outside(tools: Tools, subject: str) -> dict[str, str]:
    return wait_for(lambda: _found_outside(tools, subject), f"the doctor to find {subject}")


def _waiting(pod: dict[str, Any]) -> str:
    """Return why the container waits; it waits without failing."""
    statuses = pod["status"].get("containerStatuses", [])
    return "".join(status["state"].get("waiting", {}).get("message", "") for status in statuses)


def _holders(tools: Tools) -> list[tuple[str, int]]:
    """Return who holds how much of the GPU."""
    return [(one["pod"], one["groups"]) for one in gpus(tools)[0].get("allocations", [])]


def _condition(tools: Tools, status: str, kind: str = "HoldersKnown") -> dict[str, Any] | None:
    (node,) = tools.api.items(CTA_NODES)
    conditions = node["status"].get("conditions", [])
    return next((one for one in conditions if (one["type"], one["status"]) == (kind, status)), None)
