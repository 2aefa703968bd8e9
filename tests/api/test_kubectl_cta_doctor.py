"""``kubectl cta doctor`` as a person runs it, against a real API server with the chart and without a single kubelet."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chart_rendering import CHART, NAMESPACE, RELEASE, helm
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from cta_group_core.names import API_GROUP_VERSION
from fake_doctor_reader import status
from kubectl import Kubectl
from service_account import kubeconfig_of
from terminal_user import Person

_NODES = f"/apis/{API_GROUP_VERSION}/ctanodes"
_NODE = "gpu-1"


@pytest.fixture(scope="module")
def sick() -> Iterator[ControlPlane]:
    """Install the chart where nothing can run; one node exists in name, and has published a GPU that is in order."""
    with ControlPlane.start() as running:
        place = ("--namespace", NAMESPACE, "--create-namespace", f"--kubeconfig={running.admin_kubeconfig}")
        installed = helm("install", RELEASE, CHART, *place)
        assert installed.returncode == 0, installed.stderr
        running.api.create("/api/v1/nodes", {"metadata": {"name": _NODE}})
        room = {"nvidia.com/cta-group": "128", "pods": "110", "cpu": "8", "memory": "32Gi"}
        told = {"capacity": room, "allocatable": room, "nodeInfo": _info("v1.37.2")}
        running.api.patch(f"/api/v1/nodes/{_NODE}/status", {"status": told})
        wait_for(lambda: is_served(running), "the kinds")
        running.api.create(
            _NODES, {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTANode", "metadata": {"name": _NODE}}
        )
        running.api.patch(f"{_NODES}/{_NODE}/status", {"status": status().as_api()})
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        wait_for(lambda: sum("nodeName" in pod["spec"] for pod in running.api.items(pods)) >= 2, "pods on the node")
        yield running


def is_served(control_plane: ControlPlane) -> bool:
    """Tell whether CTANodes can be read; a new kind is refused for a moment."""
    try:
        return control_plane.api.find(_NODES) is not None
    except ApiError:
        return False


def _info(version: str) -> dict[str, str]:
    names = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion")
    rest = ("kubeProxyVersion", "operatingSystem", "architecture")
    return {**dict.fromkeys((*names, *rest), "x"), "kubeletVersion": version}


def findings(person: Person, *words: str) -> tuple[int, dict[str, Any]]:
    """Return exit status and what was found."""
    return person.asks("doctor", *words)


def test_everything_that_does_not_run_is_found(sick: ControlPlane) -> None:
    """The operator, the pods of the node, the webhook that nobody answers; worst first, each with its remedy."""
    words = ("0 of 2 pods are ready", "not written its certificate authority", "admitted it in", "its phase is Pending")

    def all_found() -> dict[str, Any] | None:
        ended, facts = findings(Person(sick, "default"))
        return facts if ended == 1 and all(word in str(facts["findings"]) for word in words) else None

    facts = wait_for(all_found, f"what does not run to be found: {words}")
    told = {one["subject"]: one for one in facts["findings"]}
    assert words[0] in told[f"{NAMESPACE}/cta-group-operator"]["sentence"]
    assert all(one["remedy"] for one in facts["findings"])
    order = ["error", "warning", "info"]
    found = [order.index(one["severity"]) for one in facts["findings"]]
    assert found == sorted(found)


def test_policies_of_the_chart_are_in_order_by_the_api_server_s_own_judgement(sick: ControlPlane) -> None:
    """Type checking of the API server is read, and it finds nothing."""
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    wait_for(lambda: all(one.get("status") for one in sick.api.items(policies)), "every policy to be checked")
    _, facts = findings(Person(sick, "default"))
    assert [one for one in facts["findings"] if one["subject"].startswith("policy")] == []


def test_a_rehearsed_pod_is_not_stored(sick: ControlPlane) -> None:
    """The pod that was admitted for show is nowhere."""
    findings(Person(sick, "default"))
    assert sick.api.items("/api/v1/namespaces/default/pods") == []


def test_a_kubelet_that_is_away_is_said_and_not_guessed_about(sick: ControlPlane) -> None:
    """Its feature gates decide, and it cannot be asked."""
    _, facts = findings(Person(sick, "default"), _NODE)
    assert facts["nodes"] == [_NODE]
    assert any(entry.startswith(f"feature gates of kubelet on {_NODE}") for entry in facts["notChecked"])
    assert "kubernetes#142293" not in str(facts["findings"])


def test_text_is_for_people(sick: ControlPlane) -> None:
    """Two lines a finding and a sum at the end."""
    ended = Person(sick, "default").types("kubectl", "cta", "doctor")
    assert ended.returncode == 1
    assert "ERROR    " in ended.stdout
    assert "         Mend it: " in ended.stdout
    assert ended.stdout.endswith("1 node examined.\n")


def test_somebody_with_few_rights_reads_what_was_not_looked_at(sick: ControlPlane, tmp_path: Path) -> None:
    """A team's account that may list CTANodes gets no guess about the rest."""
    role = {"apiGroups": ["ctagroup.dev"], "resources": ["ctanodes"], "verbs": ["list"]}
    Kubectl.admin(sick).apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "default"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "reader"},
            "rules": [role],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
        },
    )
    person = Person(sick, "default")
    kubeconfig = kubeconfig_of(sick, "default", "reader", tmp_path)
    ended = person.types("kubectl-cta", "doctor", "--kubeconfig", str(kubeconfig), "-o", "json")
    facts = json.loads(ended.stdout)
    assert (ended.returncode, facts["findings"]) == (0, [])
    assert len(facts["notChecked"]) >= 8


def test_bad_input_ends_with_two(sick: ControlPlane, tmp_path: Path) -> None:
    """No such node; no such cluster."""
    person = Person(sick, "default")
    unknown = person.types("kubectl-cta", "doctor", "gpu-9")
    assert unknown.returncode == 2
    assert "no node 'gpu-9'; nodes: gpu-1" in unknown.stderr
    nowhere = person.types("kubectl-cta", "doctor", "--kubeconfig", str(tmp_path / "none"))
    assert nowhere.returncode == 2
