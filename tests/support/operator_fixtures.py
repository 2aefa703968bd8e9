"""Fixtures of the tests of the operator against a real API server; a test module imports what it uses."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from chart_rendering import NAMESPACE, render
from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from gpu_cluster import OURS, GpuCluster
from kubectl import Kubectl
from new_namespaces import new_namespace
from operator_process import OperatorProcess, running_operator

OPERATOR = "cta-group-operator"
_RBAC_KINDS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_CRDS = Path(__file__).parents[2] / "crds"


def is_served(api: ApiClient, path: str) -> bool:
    """Tell whether the list at the path can be read; a new kind is refused for a moment, with 404 and then with 429."""
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
        wait_for(partial(is_served, control_plane.api, f"{OURS}/{plural}"), f"the kind {plural}")


@pytest.fixture(scope="module")
def operator_kubeconfig(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kubeconfig of the chart's service account for the operator, with the chart's roles and no more."""
    kubectl = Kubectl.admin(control_plane)
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    roles = [one for one in render("default") if one["kind"] in _RBAC_KINDS and "operator" in one["metadata"]["name"]]
    kubectl.apply(*roles)
    done = kubectl.run("create", "token", OPERATOR, f"--namespace={NAMESPACE}", "--duration=8h")
    assert done.returncode == 0, done.stderr
    path = tmp_path_factory.mktemp("kubeconfig") / "operator.kubeconfig"
    path.write_text(yaml.safe_dump(_kubeconfig(control_plane, done.stdout.strip())))
    return path


def _kubeconfig(control_plane: ControlPlane, token: str) -> dict[str, object]:
    server = {"server": control_plane.server, "certificate-authority": str(control_plane.certificate_authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "operator",
        "clusters": [{"name": "tests", "cluster": server}],
        "users": [{"name": OPERATOR, "user": {"token": token}}],
        "contexts": [{"name": "operator", "context": {"cluster": "tests", "user": OPERATOR}}],
    }


@pytest.fixture(scope="module")
def operator(
    kinds: None,  # noqa: ARG001 - must be served first
    operator_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[OperatorProcess]:
    """Run one operator for the tests of a module, with the rights that the chart gives it.

    A module that wants further options names them in ``OPERATOR_FLAGS``.
    """
    flags: tuple[str, ...] = getattr(request.module, "OPERATOR_FLAGS", ())
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path_factory.mktemp("operator"), *flags) as running:
        yield running


@pytest.fixture
def cluster(
    api: ApiClient,
    namespace: str,
    kinds: None,  # noqa: ARG001 - must be served first
) -> Iterator[GpuCluster]:
    """Give one test a namespace in which pods can be created, and take its nodes and quotas away afterwards."""
    made = GpuCluster(api, namespace)
    yield made
    made.close()


@pytest.fixture
def second_namespace(api: ApiClient) -> Iterator[str]:
    """Make another namespace."""
    name = new_namespace(api, "second")
    yield name
    api.discard(f"/api/v1/namespaces/{name}")
