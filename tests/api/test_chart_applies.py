"""The chart's objects and a real API server: it takes every scenario, and checks objects of the kinds."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from chart_rendering import NAMESPACE, ROOT, SCENARIOS, Manifest, of_kind, render
from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from cta_group_core.names import API_GROUP, API_GROUP_VERSION
from kubectl import Kubectl

# Kinds of the Prometheus operator and of cert-manager, which this cluster has not.
_FOREIGN = ("monitoring.coreos.com/v1", "cert-manager.io/v1")
_QUOTAS = f"/apis/{API_GROUP_VERSION}/ctaquotas"


def _own(manifests: list[Manifest]) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["apiVersion"] not in _FOREIGN]


@pytest.fixture(scope="module")
def kubectl(control_plane: ControlPlane) -> Kubectl:
    """Return kubectl as an administrator; the namespaces that scenarios name exist."""
    made = Kubectl.admin(control_plane)
    made.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in (NAMESPACE, "grafana")))
    return made


@pytest.fixture(scope="module")
def kinds(kubectl: Kubectl, control_plane: ControlPlane) -> Iterator[None]:
    """Install the three kinds; they stay for whoever comes next."""
    kubectl.apply(*(yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))))
    api = control_plane.api
    wait_for(lambda: all(_is_served(api, name) for name in _PLURALS), "the three kinds to be served")
    yield
    for quota in api.items(_QUOTAS):
        if quota["metadata"]["name"].startswith("chart-"):
            api.discard(f"{_QUOTAS}/{quota['metadata']['name']}")


_PLURALS = ("ctaquotas", "ctanodes", "ctaworkloads")


def _is_served(api: ApiClient, plural: str) -> bool:
    """Return whether the API server has made room for a new kind; until then it says 404, then 429."""
    try:
        return api.find(f"/apis/{API_GROUP_VERSION}/{plural}") is not None
    except ApiError:
        return False


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_is_taken_as_it_is(kubectl: Kubectl, scenario: str) -> None:
    """Server-side apply with strict validation: no unknown field, no wrong type, every expression compiles."""
    # Other tests may have some of the objects there, under another manager.
    how = ("--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict")
    done = kubectl.run("apply", *how, "-f", "-", objects=_own(render(scenario)))
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


def _status(api: ApiClient, path: str) -> Json | None:
    found: Json | None = api.get(path).get("status")
    return found


def test_types_of_the_policies_are_right(kubectl: Kubectl, api: ApiClient) -> None:
    """The controller manager checks the expressions against the types of what they judge, and warns of nothing."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    policies = of_kind(render("default"), "ValidatingAdmissionPolicy")
    renamed = [policy | {"metadata": {"name": f"typed-{name}"}} for name, policy in policies.items()]
    kubectl.apply(*renamed)  # no binding: they refuse nothing
    try:
        for policy in renamed:
            name = policy["metadata"]["name"]
            checked = wait_for(partial(_status, api, f"{path}/{name}"), f"the check of {name}")
            assert checked.get("typeChecking", {}).get("expressionWarnings", []) == []
    finally:
        for policy in renamed:
            api.delete(f"{path}/{policy['metadata']['name']}")


@pytest.mark.usefixtures("kinds")
def test_definitions_are_accepted_and_established(api: ApiClient) -> None:
    """The API server finds nothing to say against the schemas."""
    for plural in _PLURALS:
        made = api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{API_GROUP}")
        conditions = {condition["type"]: condition["status"] for condition in made["status"]["conditions"]}
        assert conditions["Established"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"


def _quota(name: str, **spec: object) -> Json:
    return {
        "apiVersion": API_GROUP_VERSION,
        "kind": "CTAQuota",
        "metadata": {"name": f"chart-{name}"},
        "spec": {"groups": 256, **spec},
    }


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize(
    "spec",
    [
        {"namespaces": ["team-a", "team-a-dev"]},
        {"namespaceSelector": {"matchLabels": {"team": "a"}}},
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}},
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}, "groups": 0},
        {"namespaces": ["a"], "perPod": {"max": 128}},
        {"namespaces": ["a"], "cohort": "research", "borrowingLimit": 0, "reclaim": "delete"},
    ],
)
def test_a_good_quota_is_taken(api: ApiClient, spec: Json) -> None:
    """By names or by labels, each way that the documents show."""
    made = api.create(f"{_QUOTAS}?dryRun=All&fieldValidation=Strict", _quota("good", **spec))
    assert made["spec"] == {"groups": 256, **spec}


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec: say exactly one of namespaces (by name) and namespaceSelector (by label)"),
        (
            {"namespaces": ["a"], "namespaceSelector": {"matchLabels": {"team": "a"}}},
            "spec: say exactly one of namespaces (by name) and namespaceSelector (by label)",
        ),
        ({"namespaceSelector": {}}, "namespaceSelector: say at least one label"),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In"}]}},
            "values: say them for In and NotIn, leave them out for Exists and DoesNotExist",
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists", "values": ["a"]}]}},
            "values: say them for In and NotIn, leave them out for Exists and DoesNotExist",
        ),
        ({"namespaces": ["a", "a"]}, "Duplicate value"),
        ({"namespaces": ["Team_A"]}, "should match"),
        ({"namespaces": ["a"], "groups": -1}, "should be greater than or equal to 0"),
        (
            {"namespaces": ["a"], "borrowingLimit": 8},
            "spec: borrowingLimit and reclaim need a cohort to borrow from; say its name in cohort",
        ),
        (
            {"namespaces": ["a"], "reclaim": "delete"},
            "spec: borrowingLimit and reclaim need a cohort to borrow from; say its name in cohort",
        ),
        ({"namespaces": ["a"], "perPod": {}}, "spec.perPod.max: Required value"),
        ({"namespaces": ["a"], "group": 1}, 'unknown field "spec.group"'),
    ],
)
def test_a_bad_quota_is_refused_in_words(api: ApiClient, spec: Json, words: str) -> None:
    """Rules over several fields are checked when it is written, with a sentence that says what to write."""
    with pytest.raises(ApiError) as refused:
        api.create(f"{_QUOTAS}?dryRun=All&fieldValidation=Strict", _quota("bad", **spec))
    assert words in refused.value.sentence


@pytest.mark.usefixtures("kinds")
def test_a_name_that_cannot_become_a_label_is_refused(api: ApiClient) -> None:
    """The operator marks ResourceQuotas with the quota's name."""
    with pytest.raises(ApiError, match="at most 63 characters"):
        api.create(f"{_QUOTAS}?dryRun=All", _quota("x" * 63, namespaces=["a"]))


@pytest.mark.usefixtures("kinds")
def test_status_is_written_apart_and_numbers_that_contradict_are_refused(api: ApiClient) -> None:
    """A node cannot have more free groups than it offers."""
    path = f"/apis/{API_GROUP_VERSION}/ctanodes"
    api.create(path, {"apiVersion": API_GROUP_VERSION, "kind": "CTANode", "metadata": {"name": "chart-node"}})
    try:
        totals = {"resourceName": "nvidia.com/cta-group", "capacity": 128, "allocatable": 128, "free": 136}
        with pytest.raises(ApiError, match="free: cannot be more than what is allocatable on the node"):
            api.patch(f"{path}/chart-node/status", {"status": {**totals, "largestFit": 128}})
        stored = api.patch(f"{path}/chart-node/status", {"status": {**totals, "free": 96, "largestFit": 96}})
        assert stored["status"]["free"] == 96
    finally:
        api.delete(f"{path}/chart-node")


@pytest.mark.usefixtures("kinds")
def test_people_see_what_they_ask_first(kubectl: Kubectl) -> None:
    """Short names and columns work: ``kubectl get ctaq``."""
    kubectl.apply(_quota("shown", namespaces=["team-a"]))
    table = kubectl.run("get", "ctaq", "chart-shown").stdout.splitlines()
    assert table[0].split() == ["NAME", "GROUPS", "USED", "PENDING", "BORROWED", "LENT", "READY", "AGE"]
    assert table[1].split()[:2] == ["chart-shown", "256"]
    for short in ("ctan", "ctaw", "cta"):
        assert kubectl.run("get", short, "--all-namespaces").returncode == 0


def test_the_file_of_each_kind_is_what_the_readme_installs() -> None:
    """Three files, each named by group and plural."""
    assert {path.name for path in Path(ROOT / "crds").iterdir()} == {f"{API_GROUP}_{name}.yaml" for name in _PLURALS}
