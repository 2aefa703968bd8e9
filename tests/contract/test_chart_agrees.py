"""The chart says what the programs understand: arguments, names, sizes and words."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart_rendering import CHART, NAMESPACE, SCENARIOS, of_kind, pod_templates, render
from cta_group_core import names
from cta_group_core.ids import IdForm
from cta_group_core.profiles import PROFILES
from cta_group_core.rooms import SharePolicy
from cta_group_core.units import GpuUnits
from cta_group_operator import cli as operator_cli
from cta_group_operator.admission.settings import EndpointSettings
from cta_group_operator.settings import Settings
from cta_group_plugin.cli import build_parser, mps_settings, run_settings
from cta_group_plugin.settings import DeviceList, MpsSettings, RunSettings, SourceKind, Topology

# What the kubelet puts into every pod.
_NO_LIMITS = ("enforcement.compute=false", "enforcement.memory=false")
_ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def _arguments(scenario: str, component: str, *settings: str) -> list[str]:
    templates = pod_templates(render(scenario, *settings))
    (pod,) = [pod for pod in templates.values() if _component(pod) == component]
    arguments: list[str] = pod["spec"]["containers"][0]["args"]
    return arguments


def _component(manifest: dict[str, Any]) -> str:
    return str(manifest["metadata"]["labels"]["app.kubernetes.io/component"])


def _run_settings(scenario: str, *settings: str) -> RunSettings:
    return run_settings(build_parser(_ENVIRONMENT).parse_args(_arguments(scenario, "plugin", *settings)))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_plugin_understands_its_arguments(scenario: str) -> None:
    """The real command line parses what each scenario renders; every option is a flag, none is misspelt."""
    settings = _run_settings(scenario)
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert settings.publish
    assert settings.metrics_address == f"0.0.0.0:{values['plugin']['metricsPort']}"
    assert settings.max_clients == values["gpus"]["maxClients"]
    assert settings.reserve_mib == values["gpus"]["reserveMiB"]
    assert settings.source is (SourceKind.SIMULATED if scenario == "simulated" else SourceKind.NVML)


def test_choice_of_gpus_reaches_the_plugin() -> None:
    """The chart's lists and overrides become the plugin's choice."""
    settings = _run_settings(
        "default",
        "gpus.include={0,H100}",
        "gpus.exclude={GPU-1}",
        "gpus.overrides[0].gpu=GB10",
        "gpus.overrides[0].memoryMiBOverride=98304",
    )
    assert [str(name) for name in settings.choice.include] == ["0", "H100"]
    assert [str(name) for name in settings.choice.exclude] == ["GPU-1"]
    (override,) = settings.choice.overrides
    assert (str(override.gpu), override.memory_mib, override.sm_count) == ("GB10", 98304, None)


def test_classes_of_xids_reach_the_plugin() -> None:
    """The chart's lists become the plugin's policy."""
    settings = _run_settings("default", "health.xidPolicy.fatal={13,31}", "health.xidPolicy.report={48}")
    policy = settings.health.rules.policy
    assert [policy.rule_of(code).xid_class for code in (13, 31, 48, 79)] == ["fatal", "fatal", "report", "fatal"]


def test_the_plugin_looks_at_processes_where_it_and_the_daemons_share_the_host_s_ids() -> None:
    """Otherwise it would take tenants for others, and says instead that it cannot see them."""
    shared, not_shared = Path("/proc"), None
    for chosen, folder in (
        ((), shared),
        (("plugin.hostPID=false",), not_shared),
        (("mps.hostPID=false",), not_shared),
        (("mps.hostPID=false", "mps.enabled=false", *_NO_LIMITS), shared),
    ):
        assert _run_settings("default", *chosen).health.processes_dir == folder
    assert _run_settings("simulated").health.processes_dir is None
    assert _run_settings("default", "health.lateMemorySeconds=90").health.late_memory_seconds == 90


def test_the_chart_s_defaults_are_the_program_s_own() -> None:
    """Whoever starts the plugin by hand gets what the chart gives, but for what only a cluster has."""
    settings = _run_settings("default")
    default = RunSettings(node_name=settings.node_name)
    assert settings.resource_name == default.resource_name
    assert settings.device_plugin_dir == default.device_plugin_dir
    assert settings.pod_resources_socket == default.pod_resources_socket
    assert settings.mps_root == default.mps_root
    assert settings.mps_socket == default.mps_root / "supervisor.sock"
    assert settings.enforcement == default.enforcement
    assert settings.device_list == default.device_list
    assert settings.device_ids == default.device_ids
    assert settings.topology == default.topology
    assert settings.health == default.health
    assert settings.choice == default.choice


def test_the_defaults_of_cdi_are_the_program_s_own() -> None:
    """Switching the device list alone gives what the program would do by itself."""
    settings = _run_settings("default", "deviceList=cdi")
    assert settings.device_list is DeviceList.CDI
    assert settings.cdi == RunSettings(node_name="").cdi
    assert _run_settings("default", "deviceList=cdi", "cdi.gpuKind=").cdi.gpu_kind == ""


def test_how_kubelet_sees_groups_is_the_node_s() -> None:
    """Every form of ids, and every kind of topology, can be chosen."""
    for form in IdForm:
        assert _run_settings("default", f"deviceIds={form}").device_ids is form
    for topology in Topology:
        assert _run_settings("default", f"topology={topology}").topology is topology


def test_each_dimension_is_switched_off_by_itself() -> None:
    """``enforcement.compute`` and ``enforcement.memory`` reach the program one by one."""
    for compute in (True, False):
        for memory in (True, False):
            chosen = (f"enforcement.compute={str(compute).lower()}", f"enforcement.memory={str(memory).lower()}")
            enforcement = _run_settings("default", *chosen).enforcement
            assert (enforcement.compute, enforcement.memory) == (compute, memory)


def test_the_mode_of_enforcement_is_the_node_s() -> None:
    """Every policy that the placement rule knows can be chosen."""
    for mode in SharePolicy:
        assert _run_settings("default", f"enforcement.mode={mode}").enforcement.mode is mode


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "minimal"])
def test_the_supervisor_understands_its_arguments_and_serves_where_the_plugin_asks(scenario: str) -> None:
    """One socket, spelled twice by the chart; simulated GPUs get a simulated daemon and no others do."""
    mps = mps_settings(build_parser(_ENVIRONMENT).parse_args(_arguments(scenario, "mps")), _ENVIRONMENT)
    plugin = _run_settings(scenario)
    assert mps.mps_socket == plugin.mps_socket
    assert mps.mps_root == plugin.mps_root
    assert mps.simulated is (scenario == "simulated")
    assert mps.control_binary == "nvidia-cuda-mps-control"
    assert mps.driver_root == plugin.driver_root == (Path("/driver") if scenario == "driver-root" else None)
    default = MpsSettings()
    assert mps.compute_mode is default.compute_mode
    assert mps.cgroup_root == Path("/sys/fs/cgroup")


@pytest.mark.parametrize(
    ("scenario", "values", "needed", "sets"),
    [
        ("default", (), "", False),
        ("default", ("nodes.runtimeClassName=nvidia",), "nvidia", False),
        ("default", ("nodes.runtimeClassName=nvidia", "admission.missingRuntimeClass=set"), "nvidia", True),
        ("cdi", ("admission.missingRuntimeClass=set",), "", False),
    ],
)
def test_the_operator_knows_the_runtime_class_that_tenants_need(
    scenario: str, values: tuple[str, ...], needed: str, *, sets: bool
) -> None:
    """The node pods' own, with environment variables only: CDI needs none."""
    parsed = operator_cli.build_parser(_ENVIRONMENT).parse_args(_arguments(scenario, "operator", *values))
    settings = operator_cli.settings_of(parsed)
    assert (settings.runtime_class, settings.sets_runtime_class) == (needed, sets)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_operator_understands_its_arguments(scenario: str) -> None:
    """It is told its namespace, and the names of the objects that the chart made or gave it rights for."""
    parsed = operator_cli.build_parser(_ENVIRONMENT).parse_args(_arguments(scenario, "operator"))
    settings, objects = operator_cli.settings_of(parsed), render(scenario)
    assert settings.namespace == NAMESPACE
    assert settings.resource_name == (
        "example.com/cta-group" if scenario == "hardened" else names.DEFAULT_RESOURCE_NAME
    )
    named = {name for role in of_kind(objects, "Role").values() for rule in role["rules"] for name in _names(rule)}
    if scenario == "minimal":
        assert (settings.webhook_port, settings.placement, settings.alignment.value) == (0, False, "off")
        assert named == {settings.lease_name}
        return
    own = settings.webhook_tls_dir is None
    assert own == (scenario != "cert-manager")
    assert named == {settings.lease_name, *([settings.webhook_secret_name] if own else [])}
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        (webhook,) = of_kind(objects, kind).values()
        assert settings.webhook_configuration_name == webhook["metadata"]["name"]
        assert settings.webhook_service_name == webhook["webhooks"][0]["clientConfig"]["service"]["name"]
    assert settings.webhook_service_name in of_kind(objects, "Service")
    assert settings.webhook_port == (8443 if scenario == "hardened" else Settings(identity="").webhook_port)


def _names(rule: dict[str, Any]) -> list[str]:
    found: list[str] = rule.get("resourceNames", [])
    return found


def test_without_a_supervisor_simulated_gpus_bring_their_own() -> None:
    """The plugin then simulates it in its own process, as it does without a cluster."""
    assert _run_settings("simulated", "mps.enabled=false").mps_socket is None


def test_the_driver_comes_in_by_one_way() -> None:
    """The NVIDIA runtime reads two variables; a folder of the host needs its own; simulated GPUs need none."""

    def environment(scenario: str, component: str) -> set[str]:
        templates = pod_templates(render(scenario)).values()
        (pod,) = [pod for pod in templates if _component(pod) == component]
        return {variable["name"] for variable in pod["spec"]["containers"][0].get("env", ())}

    node_name = {"CTA_GROUP_PLUGIN_NODE_NAME"}
    runtime = {names.ENV_VISIBLE_DEVICES, "NVIDIA_DRIVER_CAPABILITIES"}
    assert environment("default", "plugin") == node_name | runtime
    assert environment("default", "mps") == runtime
    assert environment("driver-root", "plugin") == node_name
    assert environment("driver-root", "mps") == set()
    assert environment("simulated", "plugin") == node_name
    assert environment("simulated", "mps") == set()


def test_names_of_the_project_are_spelled_as_core_spells_them() -> None:
    """Every ctagroup.dev name in a template is one that core declares."""
    known = {value for value in vars(names).values() if isinstance(value, str)}
    templates = "\n".join(path.read_text() for path in (CHART / "templates").rglob("*.*"))
    used = set(re.findall(r"ctagroup\.dev/[a-z-]+[a-z]", templates)) - {names.API_GROUP_VERSION}
    assert used
    assert used <= known


@pytest.mark.parametrize("variable", [*names.PROTECTED_ENV, *names.PROTECTED_ENV_PREFIXES])
def test_the_policy_protects_what_core_calls_protected(variable: str) -> None:
    """Both lists are one."""
    assert variable in (CHART / "templates" / "policies" / "environment.yaml").read_text()


@pytest.mark.parametrize("profile", ["h100-sxm", "a100-80", "rtx-4060-laptop"])
def test_the_units_policy_uses_core_s_words(profile: str) -> None:
    """The policy and the node refuse a size with the same sentence."""
    units = PROFILES[profile].units
    assert _allowed_words(units) == f"; {units.allowed()}"


def test_the_default_sizes_are_those_of_hopper() -> None:
    """H100 SXM and H200: 128, 8, 8."""
    (size,) = yaml.safe_load((CHART / "values.yaml").read_text())["policies"]["units"]["gpus"]
    units = PROFILES["h200"].units
    assert size == {"capacity": units.capacity, "minimum": units.minimum, "step": units.step}


def _allowed_words(units: GpuUnits) -> str:
    prefix = "policies.units.gpus[0]."
    sizes = {"capacity": units.capacity, "minimum": units.minimum, "step": units.step}
    settings = tuple(f"{prefix}{key}={value}" for key, value in sizes.items())
    policy = of_kind(render("default", *settings), "ValidatingAdmissionPolicy")["cta-group-units"]
    message: str = policy["spec"]["validations"][0]["messageExpression"]
    return message.partition("+ '")[2].removesuffix("'")


def test_the_webhook_sees_only_pods_of_the_resource_and_owns_no_certificate() -> None:
    """Fail open, two seconds, no caBundle (the operator's), neither kube-system nor the release's namespace."""
    (mutating,) = of_kind(render("default"), "MutatingWebhookConfiguration").values()
    (validating,) = of_kind(render("default"), "ValidatingWebhookConfiguration").values()
    (webhook,), (refusing,) = mutating["webhooks"], validating["webhooks"]
    assert (webhook["failurePolicy"], webhook["timeoutSeconds"]) == ("Ignore", 2)
    assert webhook.pop("reinvocationPolicy") == "IfNeeded"
    assert [one["clientConfig"]["service"].pop("path") for one in (webhook, refusing)] == ["/mutate", "/validate"]
    assert (webhook.pop("name"), refusing.pop("name")) == ("pods.ctagroup.dev", "servers.ctagroup.dev")
    assert webhook == refusing
    assert "caBundle" not in webhook["clientConfig"]
    assert webhook["namespaceSelector"]["matchExpressions"] == [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "cta-group"]}
    ]
    (condition,) = webhook["matchConditions"]
    assert "nvidia.com/cta-group" in condition["expression"]
    assert names.ANNOTATION_GROUPS in condition["expression"]


def test_cert_manager_s_certificate_is_the_one_that_is_served_and_trusted() -> None:
    """It has the Service's names, its Secret is mounted where the operator looks, and both configurations name it."""
    objects = render("cert-manager")
    certificate = of_kind(objects, "Certificate")["cta-group-webhook"]
    pod = pod_templates(objects)["cta-group-operator"]["spec"]
    (container,) = pod["containers"]
    settings = operator_cli.settings_of(operator_cli.build_parser(_ENVIRONMENT).parse_args(container["args"]))
    (mount,) = [one for one in container["volumeMounts"] if one["mountPath"] == str(settings.webhook_tls_dir)]
    (volume,) = [one for one in pod["volumes"] if one["name"] == mount["name"]]
    assert volume["secret"]["secretName"] == certificate["spec"]["secretName"]
    assert certificate["spec"]["dnsNames"] == list(EndpointSettings.of(settings).server_names)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        (configuration,) = of_kind(objects, kind).values()
        assert configuration["metadata"]["annotations"] == {
            "cert-manager.io/inject-ca-from": f"{NAMESPACE}/{certificate['metadata']['name']}"
        }


def test_an_issuer_of_one_s_own_replaces_the_release_s_authority() -> None:
    """Only the serving certificate is made then."""
    issuer = ("webhook.certificates.issuerRef.name=ours", "webhook.certificates.issuerRef.kind=ClusterIssuer")
    objects = render("cert-manager", *issuer)
    (certificate,) = of_kind(objects, "Certificate").values()
    assert certificate["spec"]["issuerRef"] == {"name": "ours", "kind": "ClusterIssuer"}
    assert of_kind(objects, "Issuer") == {}


def test_another_resource_name_reaches_every_part() -> None:
    """The name is one value: programs, webhook, policies and dashboards follow, and none keeps the default."""
    for manifest in render("hardened"):
        if manifest["kind"] != "CustomResourceDefinition":
            assert "nvidia.com/cta-group" not in yaml.safe_dump(manifest), manifest["metadata"]["name"]
    assert "--resource-name=example.com/cta-group" in _arguments("hardened", "plugin")
    assert "--resource-name=example.com/cta-group" in _arguments("hardened", "operator")


def test_the_schema_takes_the_profiles_that_are_known() -> None:
    """A typing error is refused by Helm, not found in the log of a plugin that crashes."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    profile = schema["properties"]["gpus"]["properties"]["simulated"]["properties"]["profile"]
    assert profile["enum"] == list(PROFILES)
