"""``helm test``: one Job beside the release, with rights that exist while it runs, and arguments that fit."""

from typing import Any

import pytest

from chart_rendering import CHART, HELM_VERSIONS, NAMESPACE, RELEASE, SCENARIOS, Manifest, of_kind, render, render_hooks
from cta_group_operator.cli import build_parser
from cta_group_operator.cli_beside import check_settings_of
from cta_group_operator.release_check import CheckSettings

_EVENT = "test"
_LEASE = "cta-group-test-lease"
_ALWAYS = {"before-hook-creation", "hook-succeeded", "hook-failed"}


def _hooks(scenario: str = "default", *settings: str, program: str = "helm") -> list[Manifest]:
    return render_hooks(scenario, *settings, event=_EVENT, program=program)


def _pod(scenario: str = "default", *settings: str) -> dict[str, Any]:
    (job,) = of_kind(_hooks(scenario, *settings), "Job").values()
    spec: dict[str, Any] = job["spec"]["template"]["spec"]
    return spec


def _settings(scenario: str = "default", *settings: str) -> CheckSettings:
    parsed = build_parser({}).parse_args(_pod(scenario, *settings)["containers"][0]["args"])
    assert parsed.command == "check-release"
    return check_settings_of(parsed)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_program_is_told_what_the_release_does(scenario: str) -> None:
    """Name of the resource, the release's namespace, and which parts are there to be tested."""
    told, objects = _settings(scenario), render(scenario)
    assert told.namespace == NAMESPACE
    assert told.resource_name == ("example.com/cta-group" if scenario == "hardened" else CheckSettings().resource_name)
    assert told.lease_name in of_kind(objects, "Deployment"), "the operator's own default for its lease"
    assert told.webhook == bool(of_kind(objects, "MutatingWebhookConfiguration"))
    operators = [one for name, one in of_kind(objects, "Deployment").items() if name.endswith("-operator")]
    assert told.placement == ("--placement=on" in operators[0]["spec"]["template"]["spec"]["containers"][0]["args"])


def test_the_defaults_are_the_program_s_own() -> None:
    """Whoever runs it by hand tests what the chart tests."""
    assert _settings() == CheckSettings()


def test_the_least_that_a_gpu_of_the_cluster_takes_is_asked_for() -> None:
    """The policy about sizes would refuse another pod."""
    sizes = ("policies.units.gpus[0].capacity=108", "policies.units.gpus[0].minimum=4", "policies.units.gpus[0].step=2")
    assert _settings("default", *sizes).groups == 4


@pytest.mark.parametrize("program", HELM_VERSIONS, ids=HELM_VERSIONS.values())
def test_its_rights_are_four_and_go_with_the_test(program: str) -> None:
    """It lists CTANodes and nodes, gets one lease, and may rehearse a pod in one namespace."""
    hooks = _hooks(program=program)
    (account,) = of_kind(hooks, "ServiceAccount").values()
    assert account["metadata"]["name"] == _pod()["serviceAccountName"]
    assert account["metadata"]["name"] not in of_kind(render("default"), "ServiceAccount")
    rights = {
        (role["metadata"].get("namespace"), resource, verb)
        for kind in ("ClusterRole", "Role")
        for role in of_kind(hooks, kind).values()
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert rights == {
        (None, "ctanodes", "list"),
        (None, "nodes", "list"),
        (NAMESPACE, "leases", "get"),
        ("default", "pods", "create"),
    }
    assert of_kind(hooks, "Role")[_LEASE]["rules"][0]["resourceNames"] == [_settings().lease_name]
    for binding in [*of_kind(hooks, "ClusterRoleBinding").values(), *of_kind(hooks, "RoleBinding").values()]:
        assert binding["roleRef"]["name"] in {*of_kind(hooks, "ClusterRole"), *of_kind(hooks, "Role")}
        assert [(one["name"], one["namespace"]) for one in binding["subjects"]] == [
            (account["metadata"]["name"], NAMESPACE)
        ]
    for hook in (one for one in hooks if one["kind"] != "Job"):
        assert set(hook["metadata"]["annotations"]["helm.sh/hook-delete-policy"].split(",")) == _ALWAYS
        assert int(hook["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0, "the Job starts with its rights"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_hooks_say_where_they_belong(scenario: str) -> None:
    """Labels as those of the release, a namespace of their own where they have one; no name twice."""
    hooks = _hooks(scenario)
    names = [(one["kind"], one["metadata"]["name"]) for one in [*render(scenario), *hooks]]
    assert len(names) == len(set(names))
    for hook in hooks:
        assert hook["metadata"]["labels"]["app.kubernetes.io/instance"] == RELEASE
        assert hook["metadata"]["labels"]["app.kubernetes.io/component"] == "test"


def test_a_failed_job_is_there_to_be_read_for_an_hour() -> None:
    """Helm 3 prints no log of it; it takes itself away, and ends soon after the program's own time."""
    (job,) = of_kind(_hooks("default", "helmTest.timeoutSeconds=20"), "Job").values()
    assert "hook-failed" not in job["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
    assert job["metadata"]["annotations"]["helm.sh/hook-output-log-policy"] == "hook-succeeded,hook-failed"
    assert (job["spec"]["backoffLimit"], job["spec"]["ttlSecondsAfterFinished"]) == (0, 3600)
    assert job["spec"]["activeDeadlineSeconds"] == 80
    assert _settings("default", "helmTest.timeoutSeconds=20").timeout_seconds == 20


@pytest.mark.parametrize("chosen", ["kube-system", NAMESPACE])
def test_a_namespace_that_admission_does_not_look_at_is_not_rehearsed_in(chosen: str) -> None:
    """No right is given there, and the program says which value to set."""
    setting = f"helmTest.namespace={chosen}"
    assert _settings("default", setting).rehearse_in == ""
    assert of_kind(_hooks("default", setting), "Role").keys() == {_LEASE}


def test_another_namespace_gets_the_right_alone() -> None:
    """The right to rehearse follows the value."""
    role = of_kind(_hooks("default", "helmTest.namespace=team-a"), "Role")["cta-group-test"]
    assert role["metadata"]["namespace"] == _settings("default", "helmTest.namespace=team-a").rehearse_in == "team-a"


def test_without_a_webhook_no_pod_may_be_made() -> None:
    """There is nothing to rehearse for."""
    assert not _settings("minimal").webhook
    assert of_kind(_hooks("minimal"), "Role").keys() == {_LEASE}


def test_the_job_may_as_little_as_the_operator_and_runs_where_it_does() -> None:
    """Not root, read-only, no capability, no volume; selector, tolerations and network as the operator's."""
    pod = _pod("default", "operator.nodeSelector.disk=ssd", "operator.tolerations[0].operator=Exists")
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "volumes" not in pod
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"disk": "ssd"}, [{"operator": "Exists"}])
    assert ("hostNetwork" in pod, "hostNetwork" in _pod("hardened")) == (False, True)


def test_people_are_told_of_it() -> None:
    """The chart's README says how to run it and how to read what it found."""
    readme = (CHART / "README.md").read_text()
    assert "helm test cta-group --namespace cta-group" in readme
    assert "kubectl -n cta-group logs job/cta-group-test" in readme
