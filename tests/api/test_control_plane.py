"""The control plane of the harness behaves as Kubernetes does."""

import re
from pathlib import Path

import pytest

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.control_plane_spec import ControlPlaneOptions
from cluster_harness.errors import StartError
from cluster_harness.state_folder import BASE, PREFIX
from cluster_harness.waiting import wait_for

NODES = "/api/v1/nodes"


def deployment(name: str) -> Json:
    """Return a Deployment of one pod that asks for nothing."""
    labels = {"app": name}
    container = {"name": "main", "image": "localhost/none:1"}
    return {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def test_the_api_server_says_the_version_that_users_run(api: ApiClient) -> None:
    """The version is a released one, not that of a build without a version."""
    assert api.get("/version")["gitVersion"] == "v1.37.2"


def test_a_deployment_becomes_a_pod_that_the_scheduler_binds(api: ApiClient, namespace: str) -> None:
    """Controller manager and scheduler do their part: ReplicaSet, pod, binding to a node that is an object only."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    status = {"capacity": room, "allocatable": room}
    node = f"room-{namespace}"
    api.create(NODES, {"metadata": {"name": node, "labels": {"room": namespace}}, "status": status})
    web = deployment("web")
    # Nodes of other tests may be there still. Nobody reports for this one, so it is soon tainted.
    web["spec"]["template"]["spec"] |= {"nodeSelector": {"room": namespace}, "tolerations": [{"operator": "Exists"}]}
    try:
        api.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", web)
        pods = f"/api/v1/namespaces/{namespace}/pods"
        pod = wait_for(lambda: next((pod for pod in api.items(pods) if "nodeName" in pod["spec"]), None), "a bound pod")
        assert pod["spec"]["nodeName"] == node
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    finally:
        api.delete(f"{NODES}/{node}")


def test_a_stopped_controller_manager_does_nothing_until_it_is_started(
    control_plane: ControlPlane, api: ApiClient, namespace: str
) -> None:
    """Components stop and start one by one while the API goes on."""
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    control_plane.stop_component("kube-controller-manager")
    try:
        api.create(f"{apps}/deployments", deployment("late"))
        assert api.items(f"{apps}/replicasets") == []
    finally:
        control_plane.start_component("kube-controller-manager")
    wait_for(lambda: api.items(f"{apps}/replicasets"), "the ReplicaSet")


def test_an_unknown_component_is_refused_with_the_known_ones(control_plane: ControlPlane) -> None:
    """A misspelt component name is answered with the list of those that exist."""
    with pytest.raises(ValueError, match="kube-scheduler"):
        control_plane.stop_component("scheduler")


def test_a_component_that_cannot_start_is_named_with_its_log_and_nothing_stays() -> None:
    """A bad flag ends the start with the API server's own words, and the state folder is removed."""
    options = ControlPlaneOptions(extra_flags={"kube-apiserver": ("--no-such-flag",)})
    with pytest.raises(StartError, match=r"(?s)kube-apiserver ended.*unknown flag: --no-such-flag") as failed:
        ControlPlane.start(options)
    # Other folders come and go: clusters of other tests.
    (folder,) = re.findall(rf"kube-apiserver ended with status 1 in ({BASE}/{PREFIX}\w+);", str(failed.value))
    assert not Path(folder).exists()
