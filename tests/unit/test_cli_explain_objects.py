"""``kubectl cta explain`` where the operator has written nothing: the objects themselves are read."""

import pytest

from cta_group_cli.errors import NotFound
from cta_group_cli.explain import show_explanation
from cta_group_cli.objects import Controller, Event, Pod
from cta_group_cli.ports import Node
from cta_group_core.names import GATE_PLACEMENT
from cta_group_core.nodes import NodeStatus
from explained_objects import answer, controller, pod, replica_set
from fake_cluster_reader import FakeClusterReader, metadata, pod_spec

REFUSAL = (
    'pods "web-1-x" is forbidden: exceeded quota: cta-group, requested: requests.nvidia.com/cta-group=32, '
    "used: requests.nvidia.com/cta-group=160, limited: requests.nvidia.com/cta-group=160"
)
NUMBERS = "needs 32, quota 160, used 160, short 32 (ResourceQuota cta-group)"


def event(uid: str, message: str, moment: str) -> Event:
    """Return the event of a pod that could not be created."""
    about = {"kind": "StatefulSet", "name": uid, "uid": uid}
    return Event.model_validate(
        {"involvedObject": about, "reason": "FailedCreate", "message": message, "lastTimestamp": moment}
    )


def test_quota_refusal_of_a_deployment_is_read_from_its_replica_set(capsys: pytest.CaptureFixture[str]) -> None:
    """The refusal that hides in the ReplicaSet's condition becomes the sentence, with the numbers."""
    reader = FakeClusterReader(
        controllers=[controller("Deployment", "web"), replica_set("web-1", failing=REFUSAL)],
        all_pods=[pod("web-1-a", {"phase": "Running"})],
    )
    facts = answer(capsys, reader, "deployment/web")
    assert facts["message"].startswith("1 of 2 pods cannot be created: " + NUMBERS[:-1])
    assert facts["blocked"] is True
    assert facts["source"] == "the objects themselves"
    assert (facts["groupsPerPod"], facts["replicasWanted"], facts["replicasRunning"]) == (32, 2, 1)
    assert "The operator has written nothing about it" in facts["remarks"][0]


def test_newest_replica_set_is_believed(capsys: pytest.CaptureFixture[str]) -> None:
    """During a rollout the refusal of the newest ReplicaSet counts, wherever it stands in the list."""
    old = replica_set("web-9", failing=REFUSAL.replace("160", "999"), created="2026-11-28T00:00:00Z")
    reader = FakeClusterReader(
        controllers=[controller("Deployment", "web"), replica_set("web-1", failing=REFUSAL), old]
    )
    assert NUMBERS[:-1] in answer(capsys, reader, "deployment/web")["message"]


def test_refusal_of_a_stateful_set_is_read_from_events(capsys: pytest.CaptureFixture[str]) -> None:
    """A StatefulSet tells in events only; the newest one about it is the answer, others' are not."""
    reader = FakeClusterReader(
        controllers=[controller("StatefulSet", "web")],
        failures=[
            event("other", REFUSAL.replace("160", "111"), "2026-11-29T23:00:00Z"),
            event("web", REFUSAL, "2026-11-29T22:00:00Z"),
            event("web", REFUSAL.replace("160", "96"), "2026-11-29T21:00:00Z"),
        ],
    )
    facts = answer(capsys, reader, "sts/web")
    assert facts["message"].startswith("2 of 2 pods cannot be created: " + NUMBERS[:-1])


def test_refusal_that_was_overcome_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Events stay for an hour; once all pods exist they are history."""
    reader = FakeClusterReader(
        controllers=[controller("StatefulSet", "web")],
        all_pods=[pod(f"web-{number}", {"phase": "Running"}, owner=("StatefulSet", "web")) for number in range(2)],
        failures=[event("web", REFUSAL, "2026-11-29T22:00:00Z")],
    )
    facts = answer(capsys, reader, "sts/web")
    assert facts["message"] == "2 of 2 pods run, 32 groups each"
    assert facts["blocked"] is False


def test_refusal_by_something_else_is_told_in_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    """A policy that refuses the pods is quoted."""
    failing = replica_set("web-1", failing="admission policy says: ask for 8 to 128")
    reader = FakeClusterReader(controllers=[controller("Deployment", "web"), failing])
    assert answer(capsys, reader, "deploy/web")["message"].endswith("admission policy says: ask for 8 to 128")


def test_strangers_and_other_conditions_do_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    """Pods that nobody or somebody else made, and conditions that tell no refusal, are no facts of a workload."""
    status = {"conditions": [{"type": "Other", "status": "True"}, {"type": "ReplicaFailure", "status": "False"}]}
    template = {"template": {"spec": pod_spec(32)}}
    reader = FakeClusterReader(
        controllers=[controller("StatefulSet", "web", spec=template, status=status)],
        all_pods=[
            pod("web-0", {"phase": "Pending"}, owner=("StatefulSet", "web"), nodeName="a"),
            pod("alone", {"phase": "Running"}, owner=None),
            pod("theirs", {"phase": "Running"}, owner=("StatefulSet", "other")),
        ],
    )
    facts = answer(capsys, reader, "sts/web")
    assert (facts["replicasWanted"], facts["replicasRunning"], facts["blocked"]) == (1, 0, False)
    assert facts["message"] == "0 of 1 pods run, 32 groups each; 1 starting"


def test_amount_that_is_no_number_of_groups_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """A quantity that no scheduler would count is not counted here either."""
    limits = {"nvidia.com/cta-group": "half"}
    odd = Pod.model_validate(
        {"metadata": metadata("web"), "spec": {"containers": [{"name": "a", "resources": {"limits": limits}}]}}
    )
    assert answer(capsys, FakeClusterReader(all_pods=[odd]), "pod/web")["message"].startswith("asks for no nvidia")


def test_workload_without_groups_is_none_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """Something that asks for no groups is told as that, and is no finding."""
    reader = FakeClusterReader(controllers=[controller("Deployment", "web", None)])
    facts = answer(capsys, reader, "deploy/web")
    assert facts["message"] == "asks for no nvidia.com/cta-group, so nothing of this project holds it back"


def test_pod_that_asks_for_nothing_is_held_by_the_gate_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """A pod that somebody gated by hand is told why nobody takes the gate off."""
    copied = pod("copied", {}, owner=None, groups=None, schedulingGates=[{"name": GATE_PLACEMENT}])
    told = answer(capsys, FakeClusterReader(all_pods=[copied]), "pod/copied")
    assert told["message"].startswith(f"asks for no nvidia.com/cta-group but has the scheduling gate {GATE_PLACEMENT}")
    assert told["blocked"] is True


def test_resource_has_the_name_that_the_nodes_give_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the chart renamed the resource, that name is looked for."""
    renamed = Node("a", NodeStatus(resource_name="example.com/slices"))
    reader = FakeClusterReader(controllers=[controller("Deployment", "web")], all_nodes=[renamed])
    assert answer(capsys, reader, "deploy/web")["message"].startswith("asks for no example.com/slices")


def test_kind_without_a_template_cannot_be_read() -> None:
    """Where no template can be found and the operator has not written, there is no answer."""
    reader = FakeClusterReader(controllers=[("CronJob", Controller.model_validate({"metadata": metadata("web")}))])
    with pytest.raises(NotFound, match="no CTAWorkload tells of cronjob/web"):
        show_explanation(reader, "cronjob/web", namespace="team-a", as_json=False)


def test_kinds_that_keep_their_template_deeper(capsys: pytest.CaptureFixture[str]) -> None:
    """A CronJob wants no pods itself, a LeaderWorkerSet wants whole groups, a DaemonSet one pod a node."""
    template = {"spec": pod_spec()}
    specs: dict[str, dict[str, object]] = {
        "CronJob": {"spec": {"jobTemplate": {"spec": {"template": template}}}},
        "LeaderWorkerSet": {"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": template}}},
        "DaemonSet": {"spec": {"template": template}, "status": {"desiredNumberScheduled": 5}},
    }
    for kind, wanted in (("CronJob", 0), ("LeaderWorkerSet", 6), ("DaemonSet", 5)):
        made = Controller.model_validate({"metadata": metadata("web"), **specs[kind]})
        found = answer(capsys, FakeClusterReader(controllers=[(kind, made)]), f"{kind}/web")
        assert (found["groupsPerPod"], found["replicasWanted"]) == (32, wanted)


def test_a_job_that_failed_and_one_that_is_suspended(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither wants a pod, and each says why; a refusal of before is none any more."""
    template = {"spec": pod_spec()}
    failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long"}]}
    for spec, status, told in (
        ({}, failed, "the Job has failed (DeadlineExceeded: too long): it makes no more pods"),
        ({"suspend": True}, {}, "the Job is suspended (spec.suspend): it makes pods when that is taken back"),
    ):
        body = {
            "metadata": metadata("train"),
            "spec": {"parallelism": 1, "template": template, **spec},
            "status": status,
        }
        reader = FakeClusterReader(controllers=[("Job", Controller.model_validate(body))])
        assert answer(capsys, reader, "job/train")["message"] == f"0 of 0 pods run, 32 groups each; {told}"


def test_pods_that_are_being_deleted_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """They are told where pods are missing, with the end of their grace."""
    until = "2026-11-30T10:00:30Z"
    ends = pod("set-0", {"phase": "Running"}, owner=("StatefulSet", "set"))
    ends = ends.model_copy(update={"metadata": ends.metadata.model_copy(update={"deletion_timestamp": until})})
    reader = FakeClusterReader(controllers=[controller("StatefulSet", "set")], all_pods=[ends])
    assert answer(capsys, reader, "sts/set")["message"] == (
        f"0 of 2 pods run, 32 groups each; being deleted: set-0 (grace until {until})"
    )
    assert f"It is being deleted (grace until {until})." in answer(capsys, reader, "pod/set-0")["remarks"]
