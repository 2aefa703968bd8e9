"""Fixtures of the tests of the operator against a real API server; a test module imports what it uses."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from gpu_cluster import OURS, GpuCluster
from kubectl import Kubectl
from operator_process import OperatorProcess, running_operator

_CRDS = Path(__file__).parents[2] / "crds"


def _served(api: ApiClient, path: str) -> bool:
    try:
        api.get(path)
    except ApiError:
        return False
    return True


@pytest.fixture(scope="module")
def kinds(control_plane: ControlPlane) -> None:
    """Define the project's kinds and wait until they are served; they stay for whoever comes next."""
    Kubectl.admin(control_plane).apply(*(yaml.safe_load(path.read_text()) for path in sorted(_CRDS.glob("*.yaml"))))
    for plural in ("ctaquotas", "ctanodes", "ctaworkloads"):
        wait_for(partial(_served, control_plane.api, f"{OURS}/{plural}"), f"the kind {plural}")


@pytest.fixture(scope="module")
def operator_namespace(control_plane: ControlPlane) -> Iterator[str]:
    """Make the namespace that the lease is in."""
    api = control_plane.api
    name: str = api.create("/api/v1/namespaces", {"metadata": {"generateName": "operator-"}})["metadata"]["name"]
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="module")
def operator(
    kinds: None,  # noqa: ARG001 - must be served first
    control_plane: ControlPlane,
    operator_namespace: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OperatorProcess]:
    """Run one operator for the tests of a module."""
    folder = tmp_path_factory.mktemp("operator")
    with running_operator(control_plane.admin_kubeconfig, operator_namespace, folder) as running:
        yield running


@pytest.fixture
def cluster(
    api: ApiClient,
    namespace: str,
    kinds: None,  # noqa: ARG001 - must be served first
) -> Iterator[GpuCluster]:
    """Give one test a namespace in which pods can be created, and take its nodes and quotas away afterwards."""
    wait_for(lambda: api.find(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"), "the default service account")
    made = GpuCluster(api, namespace)
    yield made
    made.close()
