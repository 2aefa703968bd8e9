"""A real API server with its controller manager and scheduler, shared by the tests of this folder."""

from collections.abc import Iterator

import pytest

from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """One control plane for all tests; whoever stops a component of it starts it again."""
    with ControlPlane.start() as running:
        yield running


@pytest.fixture
def api(control_plane: ControlPlane) -> ApiClient:
    """Return the API of the shared control plane, as an administrator."""
    return control_plane.api


@pytest.fixture
def namespace(api: ApiClient) -> Iterator[str]:
    """Make a namespace for one test; its removal begins when the test ends and goes on in the background."""
    name = api.create("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})["metadata"]["name"]
    yield name
    api.delete(f"/api/v1/namespaces/{name}")
