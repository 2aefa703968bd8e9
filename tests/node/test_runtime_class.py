"""A node whose default runtime brings no GPU into pods, beside one that does: no pod runs without its GPU unnoticed.

The second runtime is a stand-in for NVIDIA's: it reads the same variable, and puts a mark where that puts the device.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.node_spec import NodeOptions
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_RUNTIME_ADVICE, ENV_GPU_UUID, ENV_MPS_PERCENTAGE, LABEL_REQUESTS
from node_clusters import install_release, new_team, running_cluster
from team import RESOURCE, Json, Team

_MARK = "STAND_IN_GPU"
_STAND_IN = f"""\
#!{sys.executable}
import json, os, sys

arguments = sys.argv[1:]
if "create" in arguments:
    path = os.path.join(arguments[arguments.index("--bundle") + 1], "config.json")
    with open(path) as file:
        config = json.load(file)
    variables = config["process"].setdefault("env", [])
    asked = [entry.partition("=")[2] for entry in variables if entry.startswith("NVIDIA_VISIBLE_DEVICES=")]
    variables += [f"{_MARK}={{gpu}}" for gpu in asked[-1:]]
    with open(path, "w") as file:
        json.dump(config, file)
os.execv("RUNC", ["RUNC", *arguments])
"""
_HANDLER = """
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]
BinaryName = "PROGRAM"
"""
_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
_VALUES = (
    *("--set", "gpus.simulated.count=1", "--set", "operator.replicas=1", "--set", "operator.placement=off"),
    *("--set", "nodes.runtimeClassName=nvidia"),
)
_SET = ("--set", "admission.missingRuntimeClass=set")
_CDI = ("--set", "deviceList=cdi")


@pytest.fixture(scope="module")
def two_runtimes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a cluster with runc as its default runtime and the stand-in as a second handler."""
    program = tmp_path_factory.mktemp("runtime") / "nvidia-runtime-stand-in"
    runc = shutil.which("runc", path="/usr/local/sbin:/usr/sbin:/usr/bin:/usr/local/bin")
    assert runc
    program.write_text(_STAND_IN.replace("RUNC", runc))
    program.chmod(0o755)
    options = NodeOptions(containerd_config=_HANDLER.replace("PROGRAM", str(program)))
    with running_cluster(options) as running:
        for name, handler in (("nvidia", "nvidia"), ("plain", "runc")):
            running.api.create(_CLASSES, {"metadata": {"name": name}, "handler": handler})
        yield running


@pytest.fixture(scope="module")
def tools(two_runtimes: Cluster) -> Tools:
    """Install the chart, whose own pods use the second runtime."""
    return install_release(two_runtimes, 128, *_VALUES)


@pytest.fixture
def team(tools: Tools) -> Iterator[Team]:
    """Give a team a namespace."""
    with new_team(tools) as one:
        yield one


def runs_with(team: Team, name: str, **spec: Any) -> dict[str, str]:
    """Start a pod of 32 and return the environment of its first process, which its runtime made."""
    team.start_pod(name, 32, **spec)
    team.wait_running(name)
    text = team.tools.kubectl("-n", team.namespace, "exec", name, "--", "cat", "/proc/1/environ")
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def admitted(team: Team) -> Json:
    """Return a pod of 32 as it would come in, not kept."""
    container = {"name": "main", "image": "localhost/none:1", "resources": {"limits": {RESOURCE: 32}}}
    metadata = {"name": "rehearsal", "labels": {"a": "b"}, "annotations": {"a": "b"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    words = ("create", "--dry-run=server", "-o", "json", "-n", team.namespace, "-f", "-")
    made: Json = json.loads(team.tools.kubectl(*words, stdin=json.dumps(pod)))
    return made


def has_one_operator(team: Team) -> bool:
    """Tell whether the operator of before an upgrade is gone, which answers until its end."""
    selector = "app.kubernetes.io/component=operator"
    return len(team.tools.kubectl("-n", release.NAMESPACE, "get", "pods", "-l", selector, "-o", "name").split()) == 1


def class_of(team: Team, name: str) -> str | None:
    """Return the runtime class of a pod."""
    found: str | None = team.pod(name)["spec"].get("runtimeClassName")
    return found


def test_a_pod_without_its_gpu_is_told_by_explain(team: Team) -> None:
    """By default nothing is changed: the process has the variables and no device, and whoever asks reads why."""
    wait_for(lambda: ANNOTATION_RUNTIME_ADVICE in admitted(team)["metadata"]["annotations"], "the webhook")
    environment = runs_with(team, "bare")
    assert environment[ENV_MPS_PERCENTAGE] == "25"
    assert _MARK not in environment
    assert "It has no runtime class: set runtimeClassName: nvidia in the pod template" in team.explain("pod/bare")


def test_a_value_of_the_chart_gives_it_the_class_and_never_another_one(team: Team) -> None:
    """The device is there; a class that the pod names stays."""
    release.upgrade(team.tools, *_VALUES, *_SET)
    wait_for(lambda: has_one_operator(team) and admitted(team)["spec"].get("runtimeClassName"), "the new operator")
    environment = runs_with(team, "given")
    assert class_of(team, "given") == "nvidia"
    assert environment[_MARK] == environment[ENV_GPU_UUID]
    assert _MARK not in runs_with(team, "named", runtimeClassName="plain")
    assert class_of(team, "named") == "plain"


def test_cdi_needs_no_class(team: Team) -> None:
    """The default runtime applies the slice's device, so no pod is given a class."""
    release.upgrade(team.tools, *_VALUES, *_SET, *_CDI)
    wait_for(lambda: has_one_operator(team) and LABEL_REQUESTS in admitted(team)["metadata"]["labels"], "it")
    environment = runs_with(team, "device")
    assert class_of(team, "device") is None
    assert environment[ENV_MPS_PERCENTAGE] == "25"
    assert "runtime class" not in team.explain("pod/device")
