"""What the chart does when it is uninstalled: one Job, after the deletion, that cannot keep Helm waiting."""

from typing import Any

import pytest

from chart_rendering import HELM_VERSIONS, NAMESPACE, RELEASE, SCENARIOS, Manifest, of_kind, render, render_hooks
from cta_group_operator.cli import build_parser

_CLUSTER_SCOPED = {"ClusterRole", "ClusterRoleBinding"}
_AFTERWARDS = "post-delete"


def _job(scenario: str = "default", *settings: str) -> Manifest:
    (job,) = of_kind(render_hooks(scenario, *settings, event=_AFTERWARDS), "Job").values()
    return job


def _pod(scenario: str = "default", *settings: str) -> dict[str, Any]:
    spec: dict[str, Any] = _job(scenario, *settings)["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_helm_makes_nothing_beside_the_release_before_it_is_deleted(scenario: str) -> None:
    """No hook can keep an install, an upgrade or a deletion from happening; each takes itself away, failed or not."""
    assert {one["metadata"]["annotations"]["helm.sh/hook"] for one in render_hooks(scenario)} <= {_AFTERWARDS, "test"}
    hooks = render_hooks(scenario, event=_AFTERWARDS)
    for hook in hooks:
        annotations = hook["metadata"]["annotations"]
        assert set(annotations["helm.sh/hook-delete-policy"].split(",")) == {
            "before-hook-creation",
            "hook-succeeded",
            "hook-failed",
        }
    rights = {h["metadata"]["annotations"]["helm.sh/hook-weight"] for h in hooks if h["kind"] != "Job"}
    assert all(int(weight) < 0 for weight in rights), "the Job starts with its rights"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_hooks_say_where_they_belong(scenario: str) -> None:
    """Labels, namespaces and names as those of the release; no name twice."""
    hooks = render_hooks(scenario, event=_AFTERWARDS)
    names = [(m["kind"], m["metadata"]["name"]) for m in [*render(scenario), *hooks]]
    assert len(names) == len(set(names))
    for hook in hooks:
        assert hook["metadata"]["labels"]["app.kubernetes.io/instance"] == RELEASE
        assert hook["metadata"]["labels"]["app.kubernetes.io/component"] == "release-gates"
        assert hook["metadata"].get("namespace") == (None if hook["kind"] in _CLUSTER_SCOPED else NAMESPACE)


@pytest.mark.parametrize("program", HELM_VERSIONS, ids=HELM_VERSIONS.values())
def test_the_job_has_its_own_account_with_three_rights(program: str) -> None:
    """The release's accounts are gone by then. It lists pods and nodes and patches pods; nothing else."""
    hooks = render_hooks("default", event=_AFTERWARDS, program=program)
    (account,) = of_kind(hooks, "ServiceAccount").values()
    (role,) = of_kind(hooks, "ClusterRole").values()
    (binding,) = of_kind(hooks, "ClusterRoleBinding").values()
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"][0]["name"] == account["metadata"]["name"] == _pod()["serviceAccountName"]
    assert account["metadata"]["name"] not in of_kind(render("default"), "ServiceAccount")
    rights = {(r, verb) for rule in role["rules"] for r in rule["resources"] for verb in rule["verbs"]}
    assert rights == {("pods", "list"), ("pods", "patch"), ("nodes", "list")}


def test_the_job_ends_within_its_deadline() -> None:
    """The deadline is a value, and the program ends before it, so that it can say what is left."""
    assert _job()["spec"]["activeDeadlineSeconds"] == 60
    assert _job("default", "uninstall.releaseGates.deadlineSeconds=5")["spec"]["activeDeadlineSeconds"] == 5
    assert "--timeout-seconds=50" in _pod()["containers"][0]["args"]
    assert "--timeout-seconds=1" in _pod("default", "uninstall.releaseGates.deadlineSeconds=5")["containers"][0]["args"]


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "minimal"])
def test_the_program_understands_its_arguments(scenario: str) -> None:
    """The real command line parses what the chart renders."""
    parsed = build_parser({}).parse_args(_pod(scenario)["containers"][0]["args"])
    assert parsed.command == "release-gates"
    assert parsed.timeout_seconds == 50


def test_the_job_runs_on_every_node() -> None:
    """Cordoned and tainted nodes will do, or an uninstall of a drained cluster would leave pods gated for ever."""
    assert _pod()["tolerations"] == [{"operator": "Exists"}]
    assert "affinity" not in _pod()
    assert _pod("default", "operator.nodeSelector.disk=ssd")["nodeSelector"] == {"disk": "ssd"}


def test_the_job_may_as_little_as_the_operator() -> None:
    """Not root, read-only, no capability, no host path; the nodes' network only where the operator needs it."""
    pod = _pod()
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "volumes" not in pod
    assert ("hostNetwork" in pod, "hostNetwork" in _pod("hardened")) == (False, True)


def test_no_job_where_no_gate_is_made() -> None:
    """Without placement there are no gates; and a value takes the Job away."""
    assert render_hooks("default", "operator.placement=off", event=_AFTERWARDS) == []
    assert render_hooks("default", "uninstall.releaseGates.enabled=false", event=_AFTERWARDS) == []
