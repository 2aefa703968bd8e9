"""``kubectl cta`` for somebody who may read their own namespace and nothing of the cluster's."""

import pytest

from cta_group_cli.errors import AccessDenied, NotFound
from cta_group_cli.explain import show_explanation
from cta_group_cli.objects import Controller
from cta_group_cli.ports import Part
from cta_group_cli.quota import show_quotas
from cta_group_core.quota import NamespaceShare
from cta_group_core.workload import WorkloadOwner, WorkloadStatus
from explained_objects import answer, controller, pod
from fake_cluster_reader import FakeClusterReader, metadata, pod_spec

OF_THE_CLUSTER = frozenset({"nodes", "quotas"})
PART = Part("research", "nvidia.com/cta-group", NamespaceShare(name="team-a", hard=96, used=64))
RUNS = WorkloadStatus(
    owner=WorkloadOwner(api_version="apps/v1", kind="Deployment", name="web"),
    message="2 of 2 pods run, 32 groups each",
    groups_per_pod=32,
    replicas_wanted=2,
    replicas_running=2,
)


def a_cluster(*refused: str) -> FakeClusterReader:
    """Return a cluster whose Deployment web was explained, and that refuses these methods."""
    return FakeClusterReader(
        workloads={("team-a", "deployment-web"): RUNS},
        controllers=[controller("Deployment", "web")],
        all_pods=[pod("web-1", {"phase": "Running"}, owner=("Deployment", "web"))],
        parts={"team-a": PART},
        refused=OF_THE_CLUSTER | frozenset(refused),
    )


def test_the_explanation_is_told_with_the_part_of_the_quota(capsys: pytest.CaptureFixture[str]) -> None:
    """What the cluster's own kinds would add is left out, and said to be."""
    found = answer(capsys, a_cluster(), "deploy/web")
    assert found["message"] == RUNS.message
    assert found["quotas"] == [
        {"name": "research", "namespace": {"name": "team-a", "hard": 96, "used": 64, "pending": 0}}
    ]
    assert "Not read, since you may not: CTAQuotas." in found["remarks"]
    show_explanation(a_cluster(), "deploy/web", namespace="team-a", as_json=False)
    assert "quota research: namespace team-a: 64 of 96" in capsys.readouterr().out


def test_without_explanations_the_objects_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    """It is not the operator that is silent then; the resource's name comes from the namespace's limit."""
    reader = a_cluster("workload")
    reader.parts["team-a"] = Part("research", "example.com/slices", PART.share)
    spec = {"replicas": 1, "template": {"spec": {"containers": [{"name": "a", "resources": SLICES}]}}}
    reader.controllers = [("Deployment", Controller.model_validate({"metadata": metadata("web"), "spec": spec}))]
    found = answer(capsys, reader, "deploy/web")
    assert (found["groupsPerPod"], found["source"]) == (8, "the objects themselves")
    assert found["remarks"][0].startswith("You may not read what the operator wrote about it")


SLICES = {"limits": {"example.com/slices": "8"}}


def test_an_owner_that_may_not_be_read_ends_the_chain(capsys: pytest.CaptureFixture[str]) -> None:
    """The pod is explained all the same."""
    reader = a_cluster("workload", "controller")
    assert answer(capsys, reader, "pod/web-1")["message"] == "1 of 1 pods run, 32 groups each"


def test_what_may_not_be_seen_is_not_called_absent() -> None:
    """An object of a kind that is refused may be there; one of a kind that may be read is not."""
    with pytest.raises(AccessDenied, match="the cluster refuses controller"):
        show_explanation(a_cluster("controller"), "deploy/other", namespace="team-a", as_json=False)
    with pytest.raises(NotFound, match="CTAQuota research has 32 of 96 groups left in namespace team-a"):
        show_explanation(a_cluster(), "pod/other", namespace="team-a", as_json=False)
    with pytest.raises(AccessDenied, match="the cluster refuses workload"):
        show_explanation(a_cluster("workload"), "Model/other", namespace="team-a", as_json=False)


@pytest.mark.parametrize("as_json", [False, True])
def test_the_part_of_a_quota(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:  # noqa: FBT001 - a parameter
    """``kubectl cta quota`` tells the namespace's own part, of the context's namespace when none is said."""
    reader = a_cluster()
    reader.namespace = "team-a"
    assert show_quotas(reader, namespace=None, as_json=as_json) == 0
    told = capsys.readouterr()
    assert ('"used": 64' if as_json else "Namespace team-a has 64 of 96 groups in use (CTAQuota research).") in told.out
    assert "Only the part of namespace team-a is shown: the cluster refuses quotas" in told.err
    assert show_quotas(reader, namespace="team-b", as_json=as_json) == 0
    assert ('"quotas": []' if as_json else "No ResourceQuota of a CTAQuota limits namespace team-b.") in (
        capsys.readouterr().out
    )


def test_a_part_that_may_not_be_read_either() -> None:
    """Then the refusal is the answer."""
    with pytest.raises(AccessDenied, match="the cluster refuses part"):
        show_quotas(a_cluster("part"), namespace="team-a", as_json=False)


def test_a_job_of_others_is_not_read_as_kubernetes_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A pod of Volcano's Job train is not explained by Kubernetes' Job of that name."""
    job = WorkloadOwner(api_version="batch/v1", kind="Job", name="train")
    theirs = job.model_copy(update={"api_version": "batch.volcano.sh/v1alpha1"})
    told = {
        ("team-a", "job-train"): RUNS.model_copy(update={"owner": job, "message": "Kubernetes' own"}),
        ("team-a", "job.batch.volcano.sh-train"): RUNS.model_copy(update={"owner": theirs, "message": "Volcano's"}),
    }
    owner = {"kind": "Job", "name": "train", "uid": "t", "apiVersion": theirs.api_version, "controller": True}
    made = pod("train-0", {"phase": "Running"}, owner=None)
    made = made.model_validate(
        {"metadata": {**metadata("train-0"), "ownerReferences": [owner]}, "spec": pod_spec(), "status": {}}
    )
    reader = FakeClusterReader(workloads=told, all_pods=[made])
    assert "Its workload, job.batch.volcano.sh/train: Volcano's" in answer(capsys, reader, "pod/train-0")["remarks"]
    assert answer(capsys, reader, "job.batch.volcano.sh/train")["message"] == "Volcano's"
