"""The whole way of a pod on a real cluster with simulated GPUs: what the README promises, each promise a test."""

import re

import pytest

from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.errors import ApiError
from cluster_harness.tools import ToolError, Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import (
    ANNOTATION_ALIGN,
    ANNOTATION_ALIGNMENT,
    ENV_CAPACITY,
    ENV_COUNT,
    ENV_GPU_UUID,
    ENV_MPS_MEMORY_LIMIT,
    ENV_MPS_PERCENTAGE,
    ENV_MPS_PIPE_DIRECTORY,
    ENV_VISIBLE_DEVICES,
)
from cta_group_core.plan import plan_slice
from cta_group_core.profiles import profile_named
from kubelet_groups import groups_for_new_pods
from team import CTA_NODES, EIGHT_H100, RESOURCE, STAND_IN_IMAGE, Team, allocatable, gpus


def test_the_node_offers_its_groups_and_says_that_they_are_simulated(tools: Tools) -> None:
    """Eight simulated H100 are 1024 groups in the Node and eight GPUs of 128 in the CTANode."""
    (node,) = tools.api.items(CTA_NODES)
    assert allocatable(tools) == EIGHT_H100
    assert [gpu["capacity"] for gpu in gpus(tools)] == [128] * 8
    assert node["status"]["simulated"] is True
    assert "simulated" in tools.cta("top")


def test_five_servers_of_32_fill_one_gpu_before_they_open_another(team: Team) -> None:
    """Best fit puts four of five servers on one GPU, and each runs with the environment of its slice."""
    names = [f"server-{number}" for number in range(5)]
    for name in names:
        team.start_server(name)
    team.wait_served(*names)
    environments = [team.environment(f"deployment/{name}") for name in names]
    uuids = [environment[ENV_GPU_UUID] for environment in environments]
    assert sorted(uuids.count(uuid) for uuid in set(uuids)) == [1, 4]
    memory_mib = plan_slice(profile_named("h100-sxm"), 32).memory_mib
    for environment in environments:
        uuid = environment[ENV_GPU_UUID]
        assert environment[ENV_MPS_PERCENTAGE] == "25"
        assert environment[ENV_MPS_MEMORY_LIMIT] == f"{uuid}={memory_mib}M"
        assert environment[ENV_MPS_PIPE_DIRECTORY].endswith(f"{uuid}/pipe")
        assert environment[ENV_VISIBLE_DEVICES] == uuid
        assert (environment[ENV_COUNT], environment[ENV_CAPACITY]) == ("32", "128")


def test_the_arguments_of_a_server_fit_its_slice(team: Team) -> None:
    """Admission adds the memory setting to the pod, writes why, and leaves the Deployment as it was."""
    team.start_server("server")
    team.wait_served("server")
    pod = team.server_pod("server")
    deployment = team.tools.objects("deployment", "server", "-n", team.namespace)
    arguments = pod["spec"]["containers"][0]["args"]
    (setting,) = [it for it in arguments if it.startswith("--gpu-memory-utilization")]
    assert re.fullmatch(r"--gpu-memory-utilization=0\.2\d{1,3}", setting)
    assert "gpu-memory-utilization" in pod["metadata"]["annotations"][ANNOTATION_ALIGNMENT]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["args"] == ["Qwen/Qwen3-0.6B", "--port=8000"]


def test_a_server_with_alignment_off_dies_as_vllm_does_and_is_explained(team: Team) -> None:
    """Without alignment the default of 92 % of the card cannot start in a quarter of it; explain says both."""
    team.start_pod(
        "server",
        32,
        containers=[
            {
                "name": "vllm",
                "image": STAND_IN_IMAGE,
                "imagePullPolicy": "Never",
                "command": ["vllm", "serve"],
                "args": ["Qwen/Qwen3-0.6B"],
                "resources": {"limits": {RESOURCE: 32}},
            }
        ],
        restartPolicy="Never",
        annotations={ANNOTATION_ALIGN: "off"},
    )
    team.wait_phase("server", "Failed")
    log = team.tools.kubectl("-n", team.namespace, "logs", "server")
    assert "less than desired GPU memory utilization (0.92" in log
    team.wait_explained("pod/server", "exit code 1", f"the pod has the annotation {ANNOTATION_ALIGN}: off")


def test_one_server_too_many_is_refused_by_quota_and_explained(team: Team) -> None:
    """A quota of 64 takes two servers of 32; the third is explained with asked, quota, used and short."""
    team.declare_quota(64)
    for name in ("first", "second"):
        team.start_server(name)
    team.wait_served("first", "second")
    team.start_server("third")
    sentence = team.wait_explained("deployment/third", "short 32")
    for fact in ("32", "quota 64", "used 64"):
        assert fact in sentence


def test_more_quota_starts_the_refused_server(team: Team) -> None:
    """When the quota grows the refused server starts without anybody touching it."""
    team.declare_quota(32)
    team.start_server("first")
    team.wait_served("first")
    team.start_server("second")
    team.wait_explained("deployment/second", "short 32")
    team.declare_quota(64)
    team.wait_served("second")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        (ENV_MPS_PERCENTAGE, "100"),
        (ENV_MPS_MEMORY_LIMIT, "0=80G"),
        (ENV_MPS_PIPE_DIRECTORY, "/elsewhere"),
        (ENV_VISIBLE_DEVICES, "all"),
    ],
)
def test_a_pod_that_sets_its_own_limits_is_refused_where_they_would_win(team: Team, variable: str, value: str) -> None:
    """With slices by environment variables, kubelet lets the pod's own stand: so it never comes in."""
    with pytest.raises(ApiError, match=f"container main sets {variable}: remove it"):
        team.start_pod("defiant", 32, env={variable: value})
    assert team.pods() == []


def test_a_size_that_no_gpu_takes_is_refused_at_admission(team: Team) -> None:
    """12 groups on an H100 are refused when the pod is made, and the text says what to write."""
    with pytest.raises(ApiError, match=r"8 to 128 in steps of 8|8, 16"):
        team.start_pod("twelve", 12)


def test_a_size_that_no_gpu_takes_is_refused_by_the_node_where_the_policy_is_off(team: Team) -> None:
    """Without the policies the plugin itself refuses 12 groups, in the same unit and with what is allowed."""
    release.upgrade(team.tools, "--set", "policies.units.enabled=false")
    try:
        # The API server goes by a policy for a moment after it is gone, and without it for a moment after it is there.
        wait_for(lambda: _is_let_in(team, 12), "the policy to be off")
        team.start_pod("twelve", 12, nodeName=_node_name(team.tools))
        pod = team.wait_phase("twelve", "Failed")
    finally:
        release.upgrade(team.tools)
        wait_for(lambda: not _is_let_in(team, 20), "the policy to be on again")
    assert pod["status"]["reason"] == "UnexpectedAdmissionError"
    assert "12 groups" in pod["status"]["message"]
    assert "8 to 128 in steps of 8" in pod["status"]["message"]


def test_a_kubelet_restart_leaves_a_running_pod_and_the_resource(team: Team, cluster: Cluster) -> None:
    """After a restart of the kubelet the plugin registers again, and the pod lives on in the same container."""
    team.start_pod("steady", 32)
    team.wait_running("steady")
    before = team.pod("steady")["status"]["containerStatuses"][0]["containerID"]
    cluster.restart_kubelet()
    cluster.wait_node_ready()
    # The Node object still tells of the groups from before for a while; kubelet itself says when it may give them out.
    wait_for(lambda: groups_for_new_pods(cluster.node, RESOURCE) == EIGHT_H100, "kubelet to know the plugin")
    wait_for(lambda: allocatable(team.tools) == EIGHT_H100, "the node to offer its groups again")
    team.start_pod("next", 32)
    team.wait_running("steady", "next")
    after = team.pod("steady")["status"]["containerStatuses"][0]
    assert (after["containerID"], after["restartCount"]) == (before, 0)


def _node_name(tools: Tools) -> str:
    (node,) = tools.api.items("/api/v1/nodes")
    return str(node["metadata"]["name"])


def _is_let_in(team: Team, groups: int) -> bool:
    """Tell whether the API server would take a pod that asks for so many groups."""
    limits = f'{{"limits":{{"{RESOURCE}":{groups}}}}}'
    container = f'{{"name":"main","image":"none","resources":{limits}}}'
    overrides = f'--overrides={{"spec":{{"containers":[{container}]}}}}'
    asked = ("-n", team.namespace, "run", "probe", "--image=none", "--dry-run=server", overrides)
    try:
        team.tools.kubectl(*asked)
    except ToolError as refused:
        if "ask for 8 to 128" not in str(refused):
            raise
        return False
    return True
