"""The chart's policies in the shared API server, at work in the namespaces of these tests only."""

from collections.abc import Iterator
from functools import partial

import pytest

from chart_rendering import NAMESPACE, Manifest, render
from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_SHAPE, GATE_PLACEMENT
from group_pods import asking, container, pod
from kubectl import Kubectl
from new_namespaces import new_namespace
from refused_pods import refusal

LABEL = "policies-of-these-tests"
KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
RBAC_KINDS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")

# One pod for each policy about creation, that this policy alone refuses.
_PROBES = {
    "units": asking(12),
    "shape": pod(container(groups=32), annotations={ANNOTATION_SHAPE: "3"}),
    "environment": pod(container(groups=32, env={"CUDA_MPS_PIPE_DIRECTORY": "/x"})),
    "exclusive": pod(
        container(groups=32),
        {"name": "other", "image": "localhost/none:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}},
    ),
    "containers": pod(container("a", groups=32), container("b", groups=32)),
}

_LAST = "cta-group-units"


def _narrowed(manifest: Manifest) -> Manifest:
    """Return a binding that holds for namespaces with the label only, beside what it says itself."""
    resources = manifest["spec"].get("matchResources")
    if resources is not None:
        resources["namespaceSelector"]["matchExpressions"].append({"key": LABEL, "operator": "Exists"})
    return manifest


@pytest.fixture(scope="session")
def policies(control_plane: ControlPlane) -> Iterator[None]:
    """Apply policies, roles and kinds of the default values as a person would, and wait until each policy works."""
    admin, api = Kubectl.admin(control_plane), control_plane.api
    manifests = render("default")
    admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    admin.apply(*(m for m in manifests if m["kind"] in ("CustomResourceDefinition", *RBAC_KINDS)))
    # The API server takes notice of policies in the order in which they come: of the one that is probed first, last.
    ours = sorted((m for m in manifests if m["kind"] in KINDS), key=lambda m: bool(m["metadata"]["name"] == _LAST))
    admin.apply(*map(_narrowed, ours))
    api.patch("/api/v1/namespaces/kube-system", {"metadata": {"labels": {LABEL: "on"}}})
    namespace = new_namespace(api, "policy", {LABEL: "on"})
    for policy, probe in _PROBES.items():
        wait_for(partial(refusal, api, namespace, probe), f"the policy {policy}")
    _wait_for_gate_policy(api, namespace)
    api.delete(f"/api/v1/namespaces/{namespace}")
    yield
    admin.run("delete", "-f", "-", objects=[m for m in manifests if m["kind"] in KINDS])


def _wait_for_gate_policy(api: ApiClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    api.create(path, pod(container(groups=32), gates=[GATE_PLACEMENT]))

    def is_held() -> bool:
        try:
            api.patch(f"{path}/tenant?dryRun=All", {"spec": {"schedulingGates": None}})
        except ApiError:
            return True
        return False

    wait_for(is_held, "the policy gate")


@pytest.fixture
def tenants(policies: None, api: ApiClient) -> Iterator[str]:  # noqa: ARG001 - needed for what it does
    """Make a namespace that the policies look at."""
    name = new_namespace(api, "policy", {LABEL: "on"})
    yield name
    api.discard(f"/api/v1/namespaces/{name}")
