"""A real API server with its controller manager and scheduler, shared by the tests of this folder."""

from collections.abc import Iterator

import pytest

from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.control_plane_spec import ControlPlaneOptions
from new_namespaces import new_namespace

_PATIENT = ("--node-monitor-grace-period=1h", "--node-startup-grace-period=1h")
"""Nodes without a kubelet are lost when a test says so, not because it takes long on a busy machine."""


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """One control plane for all tests; whoever stops a component of it starts it again, or else the next test does."""
    options = ControlPlaneOptions(extra_flags={"kube-controller-manager": _PATIENT})
    with ControlPlane.start(options) as running:
        yield running


@pytest.fixture
def api(control_plane: ControlPlane) -> ApiClient:
    """Return the API of the shared control plane, as an administrator; all of its components run."""
    control_plane.restore()
    return control_plane.api


@pytest.fixture
def namespace(api: ApiClient) -> Iterator[str]:
    """Make a namespace for one test; its removal begins when the test ends and goes on in the background."""
    name = new_namespace(api, "test")
    yield name
    api.discard(f"/api/v1/namespaces/{name}")
