"""The chart over its life: installed, upgraded, rolled back and uninstalled by both versions of Helm."""

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chart_rendering import CHART, HELM_VERSIONS, NAMESPACE, RELEASE, ROOT, helm
from cluster_harness.control_plane import ControlPlane
from cta_group_core.names import API_GROUP_VERSION, FIELD_MANAGER_OPERATOR
from kinds_removal import remove_kinds
from kubectl import Kubectl

_WEBHOOK = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{RELEASE}"
_BUNDLE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n").decode()


class Release:
    """The release on one control plane; each verb fails with Helm's words."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._kubeconfig = f"--kubeconfig={control_plane.admin_kubeconfig}"
        self._kubectl = Kubectl.admin(control_plane)
        self.api = control_plane.api

    def run(self, verb: str, *more: str, program: str = "helm") -> subprocess.CompletedProcess[str]:
        """Run Helm about the release."""
        return helm(verb, RELEASE, *more, "--namespace", NAMESPACE, self._kubeconfig, program=program)

    def install(self, *more: str, program: str = "helm") -> None:
        """Install it."""
        self._must(self.run("install", str(CHART), "--create-namespace", *more, program=program))

    def upgrade(self, *more: str, program: str = "helm") -> None:
        """Upgrade it to the chart of this checkout."""
        self._must(self.run("upgrade", str(CHART), *more, program=program))

    def rollback(self) -> None:
        """Go back to the revision before."""
        self._must(self.run("rollback"))

    def uninstall(self) -> None:
        """Uninstall it; here runs no kubelet, so the Job that releases gates would only wait for its deadline."""
        self._must(self.run("uninstall", "--wait", "--no-hooks"))

    def pod_templates(self) -> dict[str, Any]:
        """Return the pod templates that the API server has."""
        apps = f"/apis/apps/v1/namespaces/{NAMESPACE}"
        workloads = self.api.items(f"{apps}/daemonsets") + self.api.items(f"{apps}/deployments")
        return {workload["metadata"]["name"]: workload["spec"]["template"] for workload in workloads}

    def write_bundle_as_the_operator(self) -> None:
        """Put a certificate authority where the operator puts it, by a patch under the operator's name."""
        patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": _BUNDLE}]
        what = ("patch", "mutatingwebhookconfiguration", RELEASE, "--type=json", f"--patch={json.dumps(patch)}")
        self._must(self._kubectl.run(*what, f"--field-manager={FIELD_MANAGER_OPERATOR}"))

    def ca_bundle(self) -> str | None:
        """Return the certificate authority of the webhook."""
        (webhook,) = self.api.get(_WEBHOOK)["webhooks"]
        bundle: str | None = webhook["clientConfig"].get("caBundle")
        return bundle

    @staticmethod
    def _must(done: subprocess.CompletedProcess[str]) -> None:
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def empty() -> Iterator[ControlPlane]:
    """Start a control plane of their own for these tests: what they install is for the whole cluster."""
    with ControlPlane.start(without=("kube-scheduler",)) as running:
        yield running


@pytest.fixture
def release(empty: ControlPlane) -> Iterator[Release]:
    """Return the release, not installed; afterwards nothing of it is left, the kept kinds neither."""
    made = Release(empty)
    yield made
    made.run("uninstall", "--wait", "--no-hooks")
    remove_kinds(empty)


def test_upgrades_and_rollback_leave_the_operator_s_fields_alone(release: Release) -> None:
    """No upgrade conflicts with the operator, takes its certificate back, or restarts a pod for nothing."""
    release.install()
    assert release.ca_bundle() is None
    release.write_bundle_as_the_operator()
    installed = release.pod_templates()
    release.upgrade()
    assert release.ca_bundle() == _BUNDLE
    assert release.pod_templates() == installed
    release.upgrade("--set", "image.tag=other", "--set", "webhook.timeoutSeconds=5")
    assert release.ca_bundle() == _BUNDLE
    images = {t["spec"]["containers"][0]["image"].rpartition(":")[2] for t in release.pod_templates().values()}
    assert images == {"other"}
    release.rollback()
    assert release.ca_bundle() == _BUNDLE
    assert release.pod_templates() == installed


def test_helm_4_goes_on_where_helm_3_began(release: Release) -> None:
    """A release of Helm 3 is upgraded by Helm 4, which applies server-side, without a conflict."""
    release.install(program="helm3")
    release.write_bundle_as_the_operator()
    installed = release.pod_templates()
    release.upgrade(program="helm3")
    release.upgrade(program="helm")
    assert release.ca_bundle() == _BUNDLE
    assert release.pod_templates() == installed


def test_quotas_outlive_an_uninstall_and_a_new_install_finds_them(release: Release) -> None:
    """Kinds and their objects are kept; nothing else of the release is left, and it can come back."""
    release.install()
    quota = {"apiVersion": API_GROUP_VERSION, "kind": "CTAQuota", "metadata": {"name": "kept"}}
    release.api.create(
        f"/apis/{API_GROUP_VERSION}/ctaquotas", quota | {"spec": {"groups": 8, "namespaces": ["team-a"]}}
    )
    release.uninstall()
    assert release.api.get(f"/apis/{API_GROUP_VERSION}/ctaquotas/kept")["spec"]["groups"] == 8
    assert release.pod_templates() == {}
    assert release.api.find(_WEBHOOK) is None
    for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations"):
        assert release.api.items(f"/apis/admissionregistration.k8s.io/v1/{kind}") == []
    release.install()
    assert release.api.get(f"/apis/{API_GROUP_VERSION}/ctaquotas/kept")["spec"]["groups"] == 8


def test_kinds_that_were_applied_by_hand_stop_an_install_with_a_way_out(release: Release, empty: ControlPlane) -> None:
    """Helm does not take over what it has not made; without its kinds, or told to take over, it installs."""
    applied = Kubectl.admin(empty).run("apply", "--server-side", "-f", str(ROOT / "crds"))
    assert applied.returncode == 0, applied.stderr
    refused = release.run("install", str(CHART), "--create-namespace")
    assert "cannot be imported into the current release" in refused.stderr
    release.install("--set", "crds.enabled=false")
    release.uninstall()
    release.install("--take-ownership", "--force-conflicts")


def test_a_second_release_is_refused_by_the_first_one_s_name(release: Release, empty: ControlPlane) -> None:
    """Also without the kinds, which alone would stop Helm; the first one can be upgraded all the same."""
    release.install()
    for program in HELM_VERSIONS:
        for name, namespace in (("second", NAMESPACE), (RELEASE, "elsewhere")):
            where = ("--namespace", namespace, "--create-namespace", f"--kubeconfig={empty.admin_kubeconfig}")
            refused = helm("install", name, CHART, *where, "--set", "crds.enabled=false", program=program)
            assert refused.returncode != 0
            assert f"has the chart already, as release {RELEASE} in namespace {NAMESPACE}" in refused.stderr
    release.upgrade()


def test_a_packaged_chart_installs_as_the_folder_does(release: Release, tmp_path: Path) -> None:
    """The package has everything that the templates read, and nothing of the tests."""
    packed = helm("package", CHART, "--destination", tmp_path)
    assert packed.returncode == 0, packed.stderr
    (package,) = tmp_path.glob("cta-group-*.tgz")
    listing = subprocess.run(["tar", "-tzf", str(package)], capture_output=True, text=True, check=True).stdout
    assert "cta-group/files/crds/ctagroup.dev_ctaquotas.yaml" in listing
    assert "/ci/" not in listing
    done = release.run("install", str(package), "--create-namespace", "--output", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["info"]["status"] == "deployed"
