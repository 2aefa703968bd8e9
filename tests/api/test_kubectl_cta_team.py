"""``kubectl cta`` of somebody who has Kubernetes' role view in one namespace, and no right of the cluster's."""

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from chart_rendering import of_kind, render
from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from cta_group_core.names import DEFAULT_RESOURCE_NAME, LABEL_QUOTA
from cta_group_core.quota import quota_key
from cta_group_core.workload import WorkloadOwner, WorkloadStatus
from gpu_cluster import OURS
from kubectl import Kubectl
from operator_fixtures import is_served
from service_account import kubeconfig_of
from terminal_user import Person

CRDS = Path(__file__).parents[2] / "crds"
Types = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def types(control_plane: ControlPlane, api: ApiClient, namespace: str, tmp_path: Path) -> Types:
    """Return the terminal of that person; the chart's role for readers is applied."""
    admin = Kubectl.admin(control_plane)
    admin.apply(*(yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))))
    for plural in ("ctaquotas", "ctanodes", "ctaworkloads"):
        wait_for(partial(is_served, api, f"{OURS}/{plural}"), f"the kind {plural}")
    roles = of_kind(render("default"), "ClusterRole").values()
    place = {"name": "member", "namespace": namespace}
    view = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    admin.apply(
        *(role for role in roles if "rbac.authorization.k8s.io/aggregate-to-view" in role["metadata"]["labels"]),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": place,
            "roleRef": view,
            "subjects": [{"kind": "ServiceAccount", **place}],
        },
    )
    kubeconfig = kubeconfig_of(control_plane, namespace, "member", tmp_path)
    person = Person(control_plane, namespace)
    return lambda *words: person.types("kubectl-cta", *words, "-n", namespace, "--kubeconfig", str(kubeconfig))


def explain_web(api: ApiClient, namespace: str) -> None:
    """Write what the operator does: an explanation of Deployment web, and the namespace's part of a quota."""
    owner = WorkloadOwner(api_version="apps/v1", kind="Deployment", name="web")
    status = WorkloadStatus(owner=owner, message="1 of 1 pods run, 32 groups each", groups_per_pod=32)
    path = f"{OURS}/namespaces/{namespace}/ctaworkloads"
    kind = {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTAWorkload"}
    api.create(path, {**kind, "metadata": {"name": "deployment-web"}})
    api.patch(f"{path}/deployment-web/status", {"status": status.as_api()})
    limits = f"/api/v1/namespaces/{namespace}/resourcequotas"
    hard = {quota_key(DEFAULT_RESOURCE_NAME): "96"}
    labels = {LABEL_QUOTA: "research"}
    api.create(limits, {"metadata": {"name": "cta-group", "labels": labels}, "spec": {"hard": hard}})
    wait_for(lambda: api.get(f"{limits}/cta-group").get("status", {}).get("used"), "the count")


def test_a_team_reads_about_its_own(types: Types, api: ApiClient, namespace: str) -> None:
    """Why its workload runs or not, and its part of the quota; the cluster's own objects are said not to be read."""
    explain_web(api, namespace)

    def told() -> str:
        return types("explain", "deploy/web").stdout

    # Kubernetes adds a role to others in a round of its own.
    wait_for(lambda: "told by: the operator" in " ".join(told().split()), "the explanation")
    assert told().startswith("deployment/web: 1 of 1 pods run, 32 groups each\n")
    assert f"namespace {namespace}: 0 of 96" in told()
    assert "Not read, since you may not: CTAQuotas." in told()
    quota = types("quota")
    assert quota.returncode == 0
    assert quota.stdout == f"Namespace {namespace} has 0 of 96 groups in use (CTAQuota research).\n"
    assert "ctaquotas.ctagroup.dev is forbidden" in quota.stderr
    absent = types("explain", "pod/absent")
    assert absent.returncode == 2
    assert "pod/absent is not in namespace" in absent.stderr
