"""The chart says what the programs understand: arguments, names, sizes and words."""

import json
import re
from typing import Any

import pytest
import yaml

from chart_rendering import CHART, IN_A_POD, NAMESPACE, SCENARIOS, arguments_of, of_kind, pod_templates, render
from cta_group_core import names
from cta_group_core.profiles import PROFILES
from cta_group_core.units import GpuUnits
from cta_group_operator import cli as operator_cli
from cta_group_operator.admission.settings import EndpointSettings
from cta_group_operator.settings import Settings


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
    parsed = operator_cli.build_parser(IN_A_POD).parse_args(arguments_of(scenario, "operator", *values))
    settings = operator_cli.settings_of(parsed)
    assert (settings.runtime_class, settings.sets_runtime_class) == (needed, sets)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_operator_understands_itsarguments_of(scenario: str) -> None:
    """It is told its namespace, and the names of the objects that the chart made or gave it rights for."""
    parsed = operator_cli.build_parser(IN_A_POD).parse_args(arguments_of(scenario, "operator"))
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
    settings = operator_cli.settings_of(operator_cli.build_parser(IN_A_POD).parse_args(container["args"]))
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
    assert "--resource-name=example.com/cta-group" in arguments_of("hardened", "plugin")
    assert "--resource-name=example.com/cta-group" in arguments_of("hardened", "operator")


def test_the_schema_takes_the_profiles_that_are_known() -> None:
    """A typing error is refused by Helm, not found in the log of a plugin that crashes."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    profile = schema["properties"]["gpus"]["properties"]["simulated"]["properties"]["profile"]
    assert profile["enum"] == list(PROFILES)
