"""Each style of the fixtures through a real API server and the operator: one plan, by ``align`` and at admission.

Bare pods, and pods of Deployments and StatefulSets. What owns them stays as its user wrote it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_ALIGN, ANNOTATION_SHAPE
from gpu_cluster import OURS
from group_pods import asking, container, pod
from kubectl import Kubectl
from narrow_policies import narrow_policies
from operator_fixtures import kinds, operator_kubeconfig
from refused_pods import refusal
from registered_operator import LABEL, Registration, probe_pod, registered_operator
from vllm_fixtures import Case, cases
from vllm_styles import STYLE, advice_of, answer_again, answer_at_admission, bare_pod, edits_of, owner, words_of

__all__ = ["kinds", "operator_kubeconfig"]
CASES = cases()
_APPLIED_AGAIN = 24
"""Twelve styles: each apply takes kubectl a while."""
_PROBES = {
    "units": asking(12),
    "environment": pod(container(groups=32, env={"CUDA_MPS_PIPE_DIRECTORY": "/x"})),
    "exclusive": pod(container(groups=32), container("other") | {"resources": {"limits": {"nvidia.com/gpu": "1"}}}),
    "containers": pod(container("a", groups=32), container("b", groups=32)),
}
"""A pod for each policy that this one alone refuses."""
_SENTENCE = "vLLM asks for tensor parallel size 2, and a slice of 32 groups is on one GPU, where only one rank runs"


@pytest.fixture(scope="module")
def registration(
    control_plane: ControlPlane,
    kinds: None,  # noqa: ARG001 - must be served first
    operator_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Registration]:
    """Run the operator behind the chart's registration."""
    folder = tmp_path_factory.mktemp("styles")
    with registered_operator(control_plane, operator_kubeconfig, folder) as (made, _):
        yield made


@pytest.fixture(scope="module")
def tenants(registration: Registration) -> Iterator[str]:
    """Make a namespace whose pods the operator and the chart's policies look at."""
    name = registration.new_namespace()
    registration.wait_seen(name)
    with narrow_policies(registration.control_plane, LABEL, name, _PROBES):
        yield name


def admitted(api: ApiClient, namespace: str, asked: Json) -> Json:
    """Return a pod as it would come in."""
    return api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", asked)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_pod_is_changed_as_align_says(registration: Registration, tenants: str, case: Case) -> None:
    """The same edits with the same reasons, or the same words about what is not edited; a second look finds nothing."""
    told, asked = answer_at_admission(case), bare_pod(case, "bare")
    refused = refusal(registration.api, tenants, asked)
    assert bool(refused) is bool(told.refused), (refused, told.refused)
    if refused:
        return
    made = admitted(registration.api, tenants, asked)
    assert edits_of(made) == told.edits
    by_hand = [one for one in told.warnings if one.startswith("not changed: ")]
    assert [f"not changed: {one}" for one in [advice_of(made)] if one] == by_hand
    again = answer_again(made)
    assert again.edits == []
    read = {flag: str(value) for flag, value in again.read.items()}
    assert read.items() >= {edit["flag"]: edit["to"] for edit in told.edits}.items()


def two_ranks() -> Json:
    """Return a pod that no GPU can run: two ranks in one slice."""
    pod = probe_pod()
    pod["spec"]["containers"][0]["args"] = ["m", "-tp=2"]
    return pod


def test_the_creator_gets_the_sentence_as_the_api_server_s_error(api: ApiClient, tenants: str) -> None:
    """It says what to write instead, and by which annotation the pod comes in all the same."""
    told = refusal(api, tenants, two_ranks())
    assert told is not None
    assert 'admission webhook "servers.ctagroup.dev" denied the request: ' in told
    assert f"{_SENTENCE}: use size 1, or ask for 2 whole GPUs (256 groups)" in told
    reported = two_ranks()
    reported["metadata"]["annotations"] = {ANNOTATION_ALIGN: "report"}
    assert f'{ANNOTATION_ALIGN}: "report"' in told
    assert refusal(api, tenants, reported) is None


def test_a_request_that_is_no_multiple_of_the_cluster_is_refused(api: ApiClient, tenants: str) -> None:
    """By its shape alone, whatever the container runs; with the sizes that suit."""
    asked = pod(container(groups=40), annotations={ANNOTATION_SHAPE: "4,4,1,non-portable"})
    told = refusal(api, tenants, asked)
    assert told is not None
    assert "40 groups are no multiple of 16: the nearest are 32 or 48" in told
    fits = pod(container(groups=48), annotations={ANNOTATION_SHAPE: "4,4,1,non-portable"})
    assert refusal(api, tenants, fits) is None


def test_a_deployment_s_refusal_is_an_event_and_explained(api: ApiClient, tenants: str) -> None:
    """The Deployment itself is accepted; its ReplicaSet tells why there is no pod, and so does the CTAWorkload."""
    labels = {"app": "server"}
    template = {"metadata": {"labels": labels}, "spec": two_ranks()["spec"]}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    api.create(f"/apis/apps/v1/namespaces/{tenants}/deployments", {"metadata": {"name": "server"}, "spec": spec})

    def events() -> list[str]:
        found = api.items(f"/api/v1/namespaces/{tenants}/events")
        return [one["message"] for one in found if one["reason"] == "FailedCreate" and _SENTENCE in one["message"]]

    wait_for(events, "the event on the ReplicaSet")

    def message() -> str:
        workload = api.find(f"{OURS}/namespaces/{tenants}/ctaworkloads/deployment-server") or {}
        return str(workload.get("status", {}).get("message", ""))

    words = (_SENTENCE, "(webhook servers.ctagroup.dev)")
    wait_for(lambda: all(word in message() for word in words), f"the explanation to say {words}")
    assert api.items(f"/api/v1/namespaces/{tenants}/pods?labelSelector=app%3Dserver") == []
    api.delete(f"/apis/apps/v1/namespaces/{tenants}/deployments/server")


class Owners:
    """Deployments and StatefulSets of every style that comes in, applied as a delivery tool does, and their pods."""

    def __init__(self, registration: Registration, namespace: str) -> None:
        self._kubectl = Kubectl.admin(registration.control_plane)
        self.api, self.namespace = registration.api, namespace
        self.cases = {f"s{number}": case for number, case in enumerate(CASES) if not answer_at_admission(case).refused}
        self.objects = [
            owner(kind, case, f"{kind.lower()}-{style}", namespace)
            for style, case in self.cases.items()
            for kind in ("Deployment", "StatefulSet")
        ]

    def apply(self, objects: Sequence[Json], *how: str) -> None:
        """Apply some of them."""
        done = self._kubectl.run("apply", *how, "-f", "-", objects=objects)
        assert done.returncode == 0, done.stderr

    def pods(self) -> dict[str, Json]:
        """Return their pods by style."""
        found = self.api.items(f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={STYLE}")
        return {pod["metadata"]["labels"][STYLE]: pod for pod in found}

    def stored(self) -> list[Json]:
        """Return the owners as the API server has them."""
        apps = f"/apis/apps/v1/namespaces/{self.namespace}"
        return self.api.items(f"{apps}/deployments") + self.api.items(f"{apps}/statefulsets")

    def replica_sets(self) -> int:
        """Return how many ReplicaSets there are."""
        return len(self.api.items(f"/apis/apps/v1/namespaces/{self.namespace}/replicasets"))


@pytest.fixture(scope="module")
def owners(registration: Registration, tenants: str) -> Owners:
    """Apply them and wait until each has its pod."""
    made = Owners(registration, tenants)
    made.apply(made.objects)
    wait_for(lambda: len(made.pods()) == len(made.objects), "a pod of each owner")
    wait_for(lambda: all(map(_is_observed, made.stored())), "the controllers to say that they have seen them")
    return made


def _is_observed(owner: Json) -> bool:
    return bool(owner["status"].get("observedGeneration") == owner["metadata"]["generation"])


def test_pods_of_controllers_come_in_as_bare_ones_do(owners: Owners) -> None:
    """The containers of both are those of the bare pod, and so are the changes that are told."""
    pods = owners.pods()
    for style, case in owners.cases.items():
        bare = admitted(owners.api, owners.namespace, bare_pod(case, "bare"))
        for kind in ("deployment", "statefulset"):
            pod = pods[f"{kind}-{style}"]
            assert words_of(pod) == words_of(bare), case.title
            assert (edits_of(pod), advice_of(pod)) == (edits_of(bare), advice_of(bare)), case.title


def test_owners_stay_as_they_were_written(owners: Owners) -> None:
    """Template and generation, and nobody but who applied them and their controller wrote to them."""
    written = {made["metadata"]["name"]: made["spec"]["template"] for made in owners.objects}
    for stored in owners.stored():
        metadata, template = stored["metadata"], stored["spec"]["template"]
        assert metadata["generation"] == 1
        assert words_of(template) == words_of(written[metadata["name"]])
        assert template["metadata"].get("annotations") == written[metadata["name"]]["metadata"].get("annotations")
        managers = {entry["manager"] for entry in metadata["managedFields"]}
        assert managers == {"kubectl-client-side-apply", "kube-controller-manager"}


def test_applying_again_changes_nothing(owners: Owners) -> None:
    """By the tool that made them, again and again, and server-side by another one; no diff, no rollout."""
    before = {style: pod["metadata"]["uid"] for style, pod in owners.pods().items()}
    specs = [stored["spec"] for stored in owners.stored()]
    for how in ((), ("--server-side", "--field-manager=another", "--force-conflicts"), ()):
        owners.apply(owners.objects[:_APPLIED_AGAIN], *how)
        assert [stored["spec"] for stored in owners.stored()] == specs, how
    assert owners.replica_sets() == len(owners.cases)
    assert {style: pod["metadata"]["uid"] for style, pod in owners.pods().items()} == before


def test_an_upgrade_changes_no_pod_and_no_template(registration: Registration, owners: Owners) -> None:
    """The next operator would have aligned none of them: it says so of each, and lets what is there be."""
    pods, specs = owners.pods(), [stored["spec"] for stored in owners.stored()]
    for operator in registration.operators:
        operator.end()
    registration.settings = (*registration.settings, "operator.alignment=report")
    registration.register(registration.port, "webhook.timeoutSeconds=28")
    upgraded = registration.start_replica(registration.ports[0])
    upgraded.wait_leading()
    style = next(style for style, case in owners.cases.items() if answer_at_admission(case).edits)

    def aligned() -> list[str]:
        path = f"{OURS}/namespaces/{owners.namespace}/ctaworkloads/deployment-deployment-{style}"
        status = (owners.api.find(path) or {}).get("status", {})
        return [one["reason"] for one in status.get("conditions", ()) if one["type"] == "ArgsAligned"]

    wait_for(lambda: aligned() == ["ReportedOnly"], "the next operator's own word")
    for name, found in owners.pods().items():
        before = pods[name]
        assert found["spec"] == before["spec"]
        for part in ("uid", "labels", "annotations"):
            assert found["metadata"].get(part) == before["metadata"].get(part)
    assert [stored["spec"] for stored in owners.stored()] == specs
    assert owners.replica_sets() == len(owners.cases)
