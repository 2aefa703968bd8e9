"""``kubectl cta explain`` where the operator has written a CTAWorkload."""

import json
from typing import Any

import pytest

from cta_group_cli.errors import BadInput, NotFound
from cta_group_cli.exits import Exit
from cta_group_cli.explain import show_explanation
from cta_group_cli.objects import Controller, Pod
from cta_group_cli.ports import Quota
from cta_group_core.names import ANNOTATION_ALIGNMENT_ADVICE
from cta_group_core.quota import QuotaSpec, QuotaStatus
from cta_group_core.workload import WorkloadStatus
from fake_cluster_reader import FakeClusterReader, metadata, pod_spec

DENIED = "1 of 6 pods cannot be created: needs 32, quota 160, used 160, short 32 (CTAQuota team-a)"
FINE = "6 of 6 pods run, 32 groups each"


def workload(message: str = DENIED, admissible: str = "False", kind: str = "Deployment") -> WorkloadStatus:
    """Return what the operator writes about a workload of six pods called web."""
    return WorkloadStatus.model_validate(
        {
            "owner": {"apiVersion": "apps/v1", "kind": kind, "name": "web"},
            "message": message,
            "groupsPerPod": 32,
            "replicasWanted": 6,
            "replicasRunning": 5,
            "conditions": [
                {
                    "type": "Admissible",
                    "status": admissible,
                    "reason": "QuotaExceeded",
                    "message": message,
                    "lastTransitionTime": "2026-11-29T20:00:00Z",
                },
                {"type": "Placed", "status": "Unknown", "reason": "NoPods"},
            ],
        }
    )


def quota(name: str, **namespaces: tuple[int, int]) -> Quota:
    """Return a quota of 160 groups; each namespace has a hard limit and what is used of it."""
    shares = [{"name": space, "hard": hard, "used": used} for space, (hard, used) in namespaces.items()]
    status = QuotaStatus.model_validate({"groups": 160, "used": 160, "pending": 32, "namespaces": shares})
    return Quota(name, QuotaSpec(groups=160), status)


def reader_with(status: WorkloadStatus, name: str = "deployment-web", **more: Any) -> FakeClusterReader:
    """Return a cluster in which the operator has written ``status`` for namespace team-a."""
    return FakeClusterReader(namespace="team-a", workloads={("team-a", name): status}, **more)


def explained(
    capsys: pytest.CaptureFixture[str], reader: FakeClusterReader, text: str, *, as_json: bool = False
) -> tuple[Exit, str]:
    """Return exit status and standard output for an object of namespace team-a."""
    status = show_explanation(reader, text, namespace="team-a", as_json=as_json)
    return status, capsys.readouterr().out


def facts(capsys: pytest.CaptureFixture[str], reader: FakeClusterReader, text: str) -> dict[str, Any]:
    """Return the JSON form of the answer."""
    answer: dict[str, Any] = json.loads(explained(capsys, reader, text, as_json=True)[1])
    return answer


def test_first_line_is_the_operators_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """The answer begins with the object and the sentence as the operator wrote it, and ends with 1 when blocked."""
    status, text = explained(capsys, reader_with(workload()), "deploy/web")
    assert text.splitlines()[0] == f"deployment/web: {DENIED}"
    assert status is Exit.FINDINGS


def test_facts_stand_below_the_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Groups, pods, the quotas of this namespace alone, and the conditions follow."""
    reader = reader_with(
        workload(), all_quotas=[quota("theirs", other=(160, 160)), quota("ours", **{"team-a": (96, 64)})]
    )
    text = explained(capsys, reader, "deployment/web")[1]
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "groups per pod: 32" in lines
    assert "pods: 5 of 6 running" in lines
    assert "quota ours: 160 of 160 groups used, 32 pending; namespace team-a: 64 of 96" in lines
    assert "told by: the operator" in lines
    assert "Admissible False QuotaExceeded 2026-11-29T20:00:00Z" in lines
    assert "Placed Unknown NoPods -" in lines
    assert "theirs" not in text


def test_json_has_the_same_facts(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs get the sentence, whether something is in the way, the numbers and the conditions."""
    answer = facts(capsys, reader_with(workload(), all_quotas=[quota("ours", **{"team-a": (96, 64)})]), "deploy/web")
    conditions, quotas = answer.pop("conditions"), answer.pop("quotas")
    assert answer == {
        "kind": "Deployment",
        "namespace": "team-a",
        "name": "web",
        "message": DENIED,
        "blocked": True,
        "source": "the operator",
        "groupsPerPod": 32,
        "replicasWanted": 6,
        "replicasRunning": 5,
        "remarks": [],
    }
    assert [(one["type"], one["status"]) for one in conditions] == [("Admissible", "False"), ("Placed", "Unknown")]
    assert quotas == [
        {
            "name": "ours",
            "groups": 160,
            "used": 160,
            "pending": 32,
            "namespace": {"name": "team-a", "hard": 96, "used": 64, "pending": 0},
        }
    ]


def test_workload_that_runs_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a condition that is False the exit status is 0."""
    status, text = explained(capsys, reader_with(workload(FINE, "True")), "deploy/web")
    assert status is Exit.FINE
    assert text.startswith(f"deployment/web: {FINE}\n")


def pod_of_web(
    status: dict[str, Any], *, replicas: int = 6, annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return a pod, its ReplicaSet and Deployment web of six, as a cluster has them."""
    deployment = {"metadata": metadata("web"), "spec": {"replicas": replicas, "template": {"spec": pod_spec()}}}
    replica_set = {"metadata": metadata("web-1", owner=("Deployment", "web"))}
    pod = metadata("web-1-x", owner=("ReplicaSet", "web-1"), annotations=annotations or {})
    return {
        "controllers": [
            ("Deployment", Controller.model_validate(deployment)),
            ("ReplicaSet", Controller.model_validate(replica_set)),
        ],
        "all_pods": [Pod.model_validate({"metadata": pod, "spec": pod_spec(nodeName="a"), "status": status})],
    }


def test_pod_that_is_stuck_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    """Where all conditions hold, a pod that kubelet refused is in the way all the same."""
    refused = pod_of_web({"phase": "Failed", "reason": "UnexpectedAdmissionError"})
    assert explained(capsys, reader_with(workload(FINE, "True"), **refused), "deploy/web")[0] is Exit.FINDINGS
    runs = pod_of_web({"phase": "Running"})
    assert explained(capsys, reader_with(workload(FINE, "True"), **runs), "deploy/web")[0] is Exit.FINE


def test_arguments_of_its_pods_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """What admission advised is on the pods; whoever asks about the Deployment reads it too."""
    advised = pod_of_web(
        {"phase": "Running"}, annotations={ANNOTATION_ALIGNMENT_ADVICE: "add --gpu-memory-utilization=0.2"}
    )
    answer = facts(capsys, reader_with(workload(), **advised), "deploy/web")
    assert answer["source"] == "the operator"
    assert answer["remarks"] == ["vLLM's arguments were not changed: add --gpu-memory-utilization=0.2."]


def test_sentence_from_before_a_scaling_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """When the operator is away its last word grows old; a number of replicas that differs shows it."""
    scaled = pod_of_web({"phase": "Running"}, replicas=8)
    answer = facts(capsys, reader_with(workload(FINE, "True"), **scaled), "deploy/web")
    assert (answer["source"], answer["replicasWanted"]) == ("the objects themselves", 8)
    assert answer["remarks"][0].startswith("What the operator wrote is old")


def test_namespace_of_the_context_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    """Without -n the namespace of the kubeconfig's context is meant."""
    assert show_explanation(reader_with(workload()), "deploy/web", namespace=None, as_json=False) is Exit.FINDINGS
    assert DENIED in capsys.readouterr().out


def test_kind_of_another_operator(capsys: pytest.CaptureFixture[str]) -> None:
    """A kind that is known by name alone is explained by its CTAWorkload."""
    reader = reader_with(workload(kind="InferenceService"), "inferenceservice-web")
    assert DENIED in explained(capsys, reader, "InferenceService/web")[1]


def test_replica_set_is_explained_by_its_deployment(capsys: pytest.CaptureFixture[str]) -> None:
    """The operator writes about the top owner; asked for something below, the answer names it."""
    replica_set = Controller.model_validate({"metadata": metadata("web-1", owner=("Deployment", "web"))})
    reader = reader_with(workload(), controllers=[("ReplicaSet", replica_set)])
    status, text = explained(capsys, reader, "rs/web-1")
    assert status is Exit.FINDINGS
    assert text.splitlines()[:3] == [f"replicaset/web-1: {DENIED}", "", "It belongs to deployment/web."]


def test_pod_of_a_deployment_tells_of_both(capsys: pytest.CaptureFixture[str]) -> None:
    """A pod's own state is the answer, and what the operator says about its Deployment follows."""
    replica_set = Controller.model_validate({"metadata": metadata("web-1", owner=("Deployment", "web"))})
    pod = Pod.model_validate(
        {
            "metadata": metadata("web-1-x", owner=("ReplicaSet", "web-1")),
            "spec": pod_spec(nodeName="gpu-7"),
            "status": {"phase": "Running"},
        }
    )
    reader = reader_with(workload(), controllers=[("ReplicaSet", replica_set)], all_pods=[pod])
    answer = facts(capsys, reader, "pod/web-1-x")
    assert answer["message"] == "1 of 1 pods run, 32 groups each"
    assert answer["blocked"] is False
    assert answer["remarks"] == ["It is on node gpu-7.", f"Its workload, deployment/web: {DENIED}"]


def test_pod_that_nobody_owns_is_told_by_the_operator(capsys: pytest.CaptureFixture[str]) -> None:
    """A bare pod has a CTAWorkload of its own, which is the answer."""
    pod = Pod.model_validate({"metadata": metadata("web"), "spec": pod_spec()})
    answer = facts(capsys, reader_with(workload(kind="Pod"), "pod-web", all_pods=[pod]), "po/web")
    assert (answer["message"], answer["source"]) == (DENIED, "the operator")


def test_owners_that_own_each_other_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Owner references in a circle do not make the search endless."""
    circle = [
        ("ReplicaSet", Controller.model_validate({"metadata": metadata(a, owner=("ReplicaSet", b)), "spec": TEMPLATE}))
        for a, b in (("a", "b"), ("b", "a"))
    ]
    reader = FakeClusterReader(namespace="team-a", controllers=circle)
    assert "told by" in explained(capsys, reader, "rs/a")[1]


TEMPLATE = {"replicas": 1, "template": {"spec": pod_spec()}}


@pytest.mark.parametrize("text", ["deploy/missing", "pod/missing", "inferenceservice/missing", "cronjob/missing"])
def test_object_that_does_not_exist(text: str) -> None:
    """What exists neither as an object nor as a CTAWorkload is an error that names it and the namespace."""
    with pytest.raises(NotFound, match=r"/missing is not in namespace team-a"):
        show_explanation(reader_with(workload()), text, namespace="team-a", as_json=False)


def test_words_that_name_no_object() -> None:
    """A name without a kind is refused with an example."""
    with pytest.raises(BadInput, match="write KIND/NAME"):
        show_explanation(reader_with(workload()), "web", namespace="team-a", as_json=False)
