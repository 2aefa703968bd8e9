"""Every scenario of the chart renders, the same with both versions of Helm, into objects that fit together."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart_rendering import CHART, HELM_VERSIONS, NAMESPACE, RELEASE, SCENARIOS, helm, of_kind, pod_templates, render
from chart_rendering import scenario_file as values_of

_WORKLOADS = ("DaemonSet", "Deployment")
_CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
_CHANGING_LABELS = {"helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"}


@pytest.fixture(params=SCENARIOS)
def manifests(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Return the objects of each scenario in turn."""
    return render(request.param)


@pytest.mark.parametrize("program", HELM_VERSIONS, ids=HELM_VERSIONS.values())
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_lint_finds_nothing(scenario: str, program: str) -> None:
    """Strict lint, values checked by the schema, in both versions."""
    done = helm("lint", "--strict", CHART, "--values", values_of(scenario), "--namespace", NAMESPACE, program=program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout
    assert "[ERROR]" not in done.stdout


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_both_versions_of_helm_render_the_same(scenario: str) -> None:
    """Whoever upgrades Helm gets no surprise out of the templates."""
    by_helm_4, by_helm_3 = ({_key(one): one for one in render(scenario, program=name)} for name in HELM_VERSIONS)
    assert by_helm_4 == by_helm_3  # they differ about when the configuration of a validating webhook is made


def _key(manifest: dict[str, Any]) -> tuple[str, str | None, str]:
    return manifest["kind"], manifest["metadata"].get("namespace"), manifest["metadata"]["name"]


def test_no_object_is_rendered_twice(manifests: list[dict[str, Any]]) -> None:
    """Kind and name are a key, and fit into what Kubernetes allows."""
    keys = list(map(_key, manifests))
    assert len(keys) == len(set(keys))
    assert all(len(name) <= 63 for _, _, name in keys)


def test_every_object_says_where_it_belongs(manifests: list[dict[str, Any]]) -> None:
    """Namespaced objects carry the namespace themselves, so that ``helm template | kubectl apply`` puts them right."""
    for manifest in manifests:
        metadata = manifest["metadata"]
        assert ("namespace" in metadata) == (manifest["kind"] not in _CLUSTER_SCOPED), metadata["name"]
        assert metadata["labels"]["app.kubernetes.io/instance"] == RELEASE
        assert metadata["labels"]["app.kubernetes.io/component"]


def test_selectors_hold_only_labels_that_stay(manifests: list[dict[str, Any]]) -> None:
    """A selector cannot be changed, so nothing that a release changes may be in one; and it selects its own pods."""
    for workload in (m for m in manifests if m["kind"] in _WORKLOADS):
        selector = workload["spec"]["selector"]["matchLabels"]
        assert not _CHANGING_LABELS & set(selector)
        assert set(selector) == {f"app.kubernetes.io/{key}" for key in ("name", "instance", "component")}
        assert selector.items() <= workload["spec"]["template"]["metadata"]["labels"].items()


def test_services_budgets_and_monitors_select_one_workload_each(manifests: list[dict[str, Any]]) -> None:
    """A selector that matches nothing fails silently: no endpoints, no metrics."""
    templates = pod_templates(manifests)
    for manifest in manifests:
        if manifest["kind"] in {"Service", "PodDisruptionBudget", "PodMonitor"}:
            spec = manifest["spec"]["selector"]
            selector = spec.get("matchLabels", spec)
            matched = [name for name, pod in templates.items() if selector.items() <= pod["metadata"]["labels"].items()]
            assert len(matched) == 1, manifest["metadata"]["name"]
    services = of_kind(manifests, "Service").values()
    for monitor in of_kind(manifests, "ServiceMonitor").values():
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        assert [s["metadata"]["name"] for s in services if wanted <= s["metadata"]["labels"].items()]


def test_service_ports_and_probes_lead_to_ports_of_the_container(manifests: list[dict[str, Any]]) -> None:
    """Names of ports are looked up in the container, and a misspelt one is no error anywhere."""
    for pod in pod_templates(manifests).values():
        (container,) = pod["spec"]["containers"]
        ports = {port["name"] for port in container["ports"]}
        assert {container[probe]["httpGet"]["port"] for probe in _PROBES} <= ports
    (operator,) = [pod for name, pod in pod_templates(manifests).items() if name.endswith("-operator")]
    for service in of_kind(manifests, "Service").values():
        targets = {port["targetPort"] for port in service["spec"]["ports"]}
        assert targets == {port["name"] for port in operator["spec"]["containers"][0]["ports"]}


def test_a_container_that_starts_is_asked_every_second_until_it_is_ready(manifests: list[dict[str, Any]]) -> None:
    """A rollout waits for each pod, and would wait for the slow period of what is asked for ever."""
    for pod in pod_templates(manifests).values():
        (container,) = pod["spec"]["containers"]
        startup, readiness = container["startupProbe"], container["readinessProbe"]
        assert startup["httpGet"] == readiness["httpGet"]
        assert startup["periodSeconds"] == 1 < readiness["periodSeconds"]
        assert startup["failureThreshold"] == 600, "ten minutes: longer than whoever makes a certificate needs"
        assert "initialDelaySeconds" not in container["livenessProbe"], "kubelet asks nothing else before"


def test_roles_and_accounts_that_are_named_exist(manifests: list[dict[str, Any]]) -> None:
    """A binding to nobody, or a pod of an account that is missing, is found at rendering."""
    accounts = set(of_kind(manifests, "ServiceAccount"))
    for pod in pod_templates(manifests).values():
        assert pod["spec"]["serviceAccountName"] in accounts
    for binding in (m for m in manifests if m["kind"] in {"RoleBinding", "ClusterRoleBinding"}):
        assert {subject["name"] for subject in binding["subjects"]} <= accounts
        assert {subject["namespace"] for subject in binding["subjects"]} == {NAMESPACE}
        role = binding["roleRef"]
        if not role["name"].startswith("system:openshift"):
            assert role["name"] in of_kind(manifests, role["kind"])
    used = {pod["spec"]["serviceAccountName"] for pod in pod_templates(manifests).values()}
    assert accounts == used


def test_each_policy_has_its_binding(manifests: list[dict[str, Any]]) -> None:
    """A policy without a binding does nothing."""
    policies = of_kind(manifests, "ValidatingAdmissionPolicy")
    bindings = of_kind(manifests, "ValidatingAdmissionPolicyBinding")
    assert set(policies) == {binding["spec"]["policyName"] for binding in bindings.values()} == set(bindings)


def test_each_refusal_has_words_of_its_own(manifests: list[dict[str, Any]]) -> None:
    """The API server drops a composed message with a line break or beyond 5 KiB, and then names the expression."""
    for name, policy in of_kind(manifests, "ValidatingAdmissionPolicy").items():
        for validation in policy["spec"]["validations"]:
            assert validation.get("message"), f"{name}: {validation['expression']}"
            assert "\n" not in validation["message"], name


def test_the_minimal_scenario_is_the_two_programs_and_their_rights() -> None:
    """Every switch takes its objects away."""
    kinds = {manifest["kind"] for manifest in render("minimal")}
    assert kinds == {
        "DaemonSet",
        "Deployment",
        "Service",
        "ServiceAccount",
        *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    }
    assert set(pod_templates(render("minimal"))) == {"cta-group-plugin", "cta-group-operator"}


@pytest.mark.parametrize(
    ("release", "namespace", "prefix", "cluster_prefix"),
    [
        ("cta-group", "cta-group", "cta-group", "cta-group"),
        ("cta-group", "gpu", "cta-group", "gpu-cta-group"),
        ("blue", "gpu", "blue-cta-group", "gpu-blue-cta-group"),
    ],
)
def test_two_releases_never_share_a_name(release: str, namespace: str, prefix: str, cluster_prefix: str) -> None:
    """Objects without a namespace carry that of the release in their names."""
    done = helm("template", release, CHART, "--namespace", namespace, "--show-only", "templates/plugin/rbac.yaml")
    assert f"kind: ServiceAccount\nmetadata:\n  name: {prefix}-plugin\n" in done.stdout
    assert f"kind: ClusterRole\nmetadata:\n  name: {cluster_prefix}-plugin\n" in done.stdout


def test_long_names_are_cut_not_refused() -> None:
    """Helm allows a release 53 characters; every name stays within 63."""
    done = helm("template", "r" * 53, CHART, "--namespace", "n" * 60)
    assert done.returncode == 0, done.stderr
    assert ("r" * 40) + "-operator" in done.stdout


@pytest.mark.parametrize("scenario", ["default", "simulated", "minimal"])
def test_notes_say_what_runs_and_what_is_next(scenario: str) -> None:
    """The notes name what this release installed, and warn of what it does not do."""
    command = ("install", RELEASE, CHART, "--namespace", NAMESPACE, "--dry-run=client", "--values", values_of(scenario))
    notes = helm(*command).stdout.partition("NOTES:")[2]
    for word in (
        "helm test cta-group --namespace cta-group",
        "kubectl cta doctor",
        "kubectl get ctanodes",
        "kind: CTAQuota",
        "{nvidia.com/cta-group: 32}",
        "kubectl cta explain",
    ):
        assert word in notes
    assert ("THE GPUS ARE SIMULATED: each node pretends to have 8 x h100-sxm" in notes) == (scenario == "simulated")
    assert ("NOT LIMITED: SMs and memory" in notes) == (scenario == "minimal")
    assert ("cta-group-mps" in notes) == (scenario != "minimal")
    assert ("8 to 128 in steps of 8, or a multiple of 128" in notes) == (scenario != "minimal")


def test_another_version_of_the_chart_leaves_the_pods_of_the_mps_supervisor(tmp_path: Path) -> None:
    """They are replaced by hand only: with the image named nothing changes in them that an upgrade would wait for."""
    settings = ("--set", "mps.image=registry.example/plugin:1")
    template = {}
    for version in ("7.0.0", "8.0.0"):
        chart = tmp_path / version
        shutil.copytree(CHART, chart)
        about = yaml.safe_load((chart / "Chart.yaml").read_text())
        (chart / "Chart.yaml").write_text(yaml.safe_dump(about | {"version": version, "appVersion": version}))
        done = helm("template", RELEASE, chart, "--namespace", NAMESPACE, *settings)
        assert done.returncode == 0, done.stderr
        assert version in done.stdout
        template[version] = pod_templates(yaml.safe_load_all(done.stdout))["cta-group-mps"]
    assert template["7.0.0"] == template["8.0.0"]


@pytest.mark.parametrize(
    ("kubernetes", "rolling"),
    [
        ("v1.30.0", {"maxUnavailable": 1}),
        ("v1.36.9", {"maxUnavailable": 1}),
        ("v1.37.0", {"maxSurge": 1, "maxUnavailable": 0}),
        ("v1.37.2+k3s1", {"maxSurge": 1, "maxUnavailable": 0}),
        ("v1.38.0-rc.1", {"maxSurge": 1, "maxUnavailable": 0}),
    ],
)
def test_plugin_is_rolled_without_a_gap_where_the_kubelet_allows_it(kubernetes: str, rolling: dict[str, int]) -> None:
    """A kubelet before 1.37 drops the new plugin with the old one, so the old one has to end first there."""
    done = helm("template", "x", CHART, "--kube-version", kubernetes, "-s", "templates/plugin/daemonset.yaml")
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}


def test_update_strategy_that_somebody_sets_counts() -> None:
    """Whatever the version is."""
    plugin = of_kind(render("hardened"), "DaemonSet")["gpu-groups-plugin"]
    assert plugin["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}
