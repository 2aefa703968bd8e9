"""Gates are taken off against a real API server, and a Job that cannot run does not keep an uninstall from its end."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chart_rendering import CHART, HELM_VERSIONS, NAMESPACE, RELEASE, ROOT, helm
from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from cta_group_core.names import GATE_PLACEMENT
from cta_group_operator.cli import main
from kinds_removal import remove_kinds
from new_namespaces import new_namespace

README = (CHART / "README.md").read_text()
_DEADLINE_SECONDS = 3


@pytest.fixture(scope="module")
def empty() -> Iterator[ControlPlane]:
    """Start a control plane of their own for these tests: what they install is for the whole cluster."""
    with ControlPlane.start(without=("kube-scheduler",)) as running:
        yield running


@pytest.fixture
def api(empty: ControlPlane) -> Iterator[ApiClient]:
    """Return the API; the kinds, which every uninstall keeps, are gone afterwards."""
    yield empty.api
    remove_kinds(empty)


@pytest.fixture
def team(api: ApiClient) -> Iterator[str]:
    """Make a namespace with two pods that wait for our gate, one of them for another one too."""
    name = new_namespace(api, "gates")
    pods = {"plain": [GATE_PLACEMENT], "held": ["example.com/hold", GATE_PLACEMENT]}
    for pod, gates in pods.items():
        api.create(f"/api/v1/namespaces/{name}/pods", gated_pod(pod, gates))
    yield name
    for pod in pods:
        api.discard(f"/api/v1/namespaces/{name}/pods/{pod}")
    api.discard(f"/api/v1/namespaces/{name}")


def gated_pod(name: str, gates: list[str]) -> Json:
    """Return a pod of 32 groups that waits for gates."""
    container = {"name": "main", "image": "localhost/none:1", "resources": {"limits": {"nvidia.com/cta-group": "32"}}}
    spec = {"containers": [container], "schedulingGates": [{"name": gate} for gate in gates]}
    return {"metadata": {"name": name, "labels": {"ctagroup.dev/requests": "true"}}, "spec": spec}


def gates_of(api: ApiClient, namespace: str) -> dict[str, list[str]]:
    """Return the gates of each pod of the namespace."""
    pods = api.items(f"/api/v1/namespaces/{namespace}/pods")
    return {pod["metadata"]["name"]: [gate["name"] for gate in pod["spec"].get("schedulingGates", ())] for pod in pods}


def test_our_gate_is_taken_off_and_a_foreign_one_stays(
    empty: ControlPlane, api: ApiClient, team: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says which pods it released; called again it finds nothing to do."""
    flags = ["release-gates", f"--kubeconfig={empty.admin_kubeconfig}"]
    assert main(flags) == 0
    assert f"taken off 2 pods ({team}/held, {team}/plain)" in capsys.readouterr().out
    assert gates_of(api, team) == {"plain": [], "held": ["example.com/hold"]}
    assert main(flags) == 0
    assert "taken off 0 pods" in capsys.readouterr().out


@pytest.mark.parametrize("program", HELM_VERSIONS, ids=HELM_VERSIONS.values())
def test_an_uninstall_whose_job_cannot_run_ends_and_leaves_nothing(
    empty: ControlPlane, api: ApiClient, team: str, program: str
) -> None:
    """No node is up: Helm waits for the Job's deadline and says so; the release is gone, and so is the Job."""
    place = ("--namespace", NAMESPACE, f"--kubeconfig={empty.admin_kubeconfig}")
    deadline = f"uninstall.releaseGates.deadlineSeconds={_DEADLINE_SECONDS}"
    installed = helm("install", RELEASE, CHART, "--create-namespace", "--set", deadline, *place, program=program)
    assert installed.returncode == 0, installed.stderr
    ended = helm("uninstall", RELEASE, "--timeout", "3m", *place, program=program)
    assert ended.returncode != 0
    assert "release-gates" in ended.stderr
    assert re.search(r"Job Failed|DeadlineExceeded", ended.stderr), "the Job's own deadline ended it, not Helm's"
    # Helm 3 deletes a hook that failed, but not those before it: the account without a Job, and its three rights.
    may_stay = {f"{RELEASE}-release-gates"} if program == "helm3" else set()
    wait_for(lambda: set(leftovers(api)) <= may_stay, "what Helm deleted to be gone")
    assert api.items(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs") == []
    assert GATE_PLACEMENT in gates_of(api, team)["plain"], "nobody could take it off"
    again = helm("uninstall", RELEASE, "--ignore-not-found", *place, program=program)
    assert again.returncode == 0, again.stderr


def leftovers(api: ApiClient) -> list[str]:
    """Return what carries the release's labels, the kinds aside, which are kept on purpose."""
    places = (
        *(f"/apis/apps/v1/namespaces/{NAMESPACE}/{kind}" for kind in ("daemonsets", "deployments")),
        f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs",
        f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
        *(f"/apis/rbac.authorization.k8s.io/v1/{kind}" for kind in ("clusterroles", "clusterrolebindings")),
        *(
            f"/apis/admissionregistration.k8s.io/v1/{kind}"
            for kind in ("mutatingwebhookconfigurations", "validatingadmissionpolicies")
        ),
    )
    found = [item["metadata"] for place in places for item in api.items(place)]
    return [one["name"] for one in found if one.get("labels", {}).get("app.kubernetes.io/part-of") == "cta-group"]


def test_the_pipeline_of_the_readme_does_the_same_with_kubectl_alone(
    empty: ControlPlane, api: ApiClient, team: str, tmp_path: Path
) -> None:
    """The lines that a person copies from the chart's README take our gate off and leave the rest of the pods alone."""
    (pipeline,) = re.findall(r"(kubectl get pods -A .*?kubectl replace -f -)", README, re.DOTALL)
    environment = {
        "HOME": str(tmp_path),
        "KUBECONFIG": str(empty.admin_kubeconfig),
        "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
    }
    done = subprocess.run(["bash", "-c", pipeline], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert gates_of(api, team) == {"plain": [], "held": ["example.com/hold"]}
