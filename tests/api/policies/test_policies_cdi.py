"""The policy about environments where slices are CDI devices: only what a device does not overwrite is refused."""

from collections.abc import Iterator

import pytest

from chart_rendering import render
from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from group_pods import asking, container, pod
from kubectl import Kubectl
from new_namespaces import new_namespace
from refused_pods import refusal

_NAME = "environment-with-cdi"
_LABEL = "policies-with-cdi"
_OWN_LIMITS = {
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100",
    "CUDA_MPS_PIPE_DIRECTORY": "/elsewhere",
    "NVIDIA_VISIBLE_DEVICES": "all",
}


@pytest.fixture(scope="module")
def tenants(control_plane: ControlPlane) -> Iterator[str]:
    """Make a namespace in which the policy of a release with CDI devices is the only one."""
    admin, api = Kubectl.admin(control_plane), control_plane.api
    rendered = render("default", "deviceList=cdi")
    policy = [made for made in rendered if made["metadata"]["name"] == "cta-group-environment"]
    for made in policy:
        made["metadata"]["name"] = _NAME
    (binding,) = (made for made in policy if made["kind"].endswith("Binding"))
    binding["spec"]["policyName"] = _NAME
    selector = binding["spec"]["matchResources"]["namespaceSelector"]
    selector["matchExpressions"].append({"key": _LABEL, "operator": "Exists"})
    admin.apply(*policy)
    name = new_namespace(api, "cdi", {_LABEL: "on"})
    probe = pod(container(groups=32), container("side", env={"CUDA_MPS_A": "1"}))
    wait_for(lambda: refusal(api, name, probe), "the policy")
    yield name
    api.discard(f"/api/v1/namespaces/{name}")
    admin.run("delete", "-f", "-", objects=policy)


def test_container_with_a_slice_may_say_what_it_likes(api: ApiClient, tenants: str) -> None:
    """The device's edits come after it, so there is nothing to forbid."""
    assert refusal(api, tenants, pod(container(groups=32, env=_OWN_LIMITS))) is None


@pytest.mark.parametrize("name", sorted(_OWN_LIMITS))
def test_container_beside_it_may_not(api: ApiClient, tenants: str, name: str) -> None:
    """A container without a device keeps what it says, and could so take a GPU that nobody gave it."""
    beside = container("side", env={name: _OWN_LIMITS[name]})
    assert f"container side sets {name}: remove it" in (refusal(api, tenants, pod(container(groups=32), beside)) or "")


def test_container_beside_it_may_say_that_it_sees_no_gpu(api: ApiClient, tenants: str) -> None:
    """``void`` takes nothing."""
    beside = container("side", env={"NVIDIA_VISIBLE_DEVICES": "void"})
    assert refusal(api, tenants, pod(container(groups=32), beside)) is None


def test_debug_container_is_judged_as_ever(api: ApiClient, tenants: str) -> None:
    """A debug container gets no device, so nothing overwrites what it says."""
    api.create(f"/api/v1/namespaces/{tenants}/pods", asking(16))
    debugger = {"spec": {"ephemeralContainers": [container("debugger", env={"NVIDIA_VISIBLE_DEVICES": "all"})]}}
    with pytest.raises(ApiError, match="container debugger sets NVIDIA_VISIBLE_DEVICES: remove it"):
        api.patch(f"/api/v1/namespaces/{tenants}/pods/tenant/ephemeralcontainers", debugger)
