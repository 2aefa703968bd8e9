"""``kubectl cta explain`` where the operator has written nothing: the objects themselves are read."""

import json
from typing import Any

import pytest

from cta_group_cli.errors import NotFound
from cta_group_cli.explain import show_explanation
from cta_group_cli.objects import Controller, Event, Pod
from cta_group_cli.ports import Node
from cta_group_core.names import ANNOTATION_ALIGNMENT, GATE_PLACEMENT
from cta_group_core.nodes import NodeStatus
from fake_cluster_reader import FakeClusterReader, metadata, pod_spec

REFUSAL = (
    'pods "web-1-x" is forbidden: exceeded quota: cta-group, requested: requests.nvidia.com/cta-group=32, '
    "used: requests.nvidia.com/cta-group=160, limited: requests.nvidia.com/cta-group=160"
)
NUMBERS = "needs 32, quota 160, used 160, short 32 (ResourceQuota cta-group)"


def controller(kind: str, name: str, groups: int | None = 32, **more: Any) -> tuple[str, Controller]:
    """Return something that wants two pods of 32 groups, changed as said."""
    spec = {"replicas": 2, "template": {"spec": pod_spec(groups)}}
    return kind, Controller.model_validate({"metadata": metadata(name), "spec": spec, **more})


def replica_set(
    name: str, *, failing: str | None = None, created: str = "2026-11-29T20:00:00Z"
) -> tuple[str, Controller]:
    """Return a ReplicaSet of Deployment web, with the condition of one that is refused."""
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": failing}
    return controller(
        "ReplicaSet",
        name,
        metadata=metadata(name, owner=("Deployment", "web"), creationTimestamp=created),
        status={"conditions": [condition] if failing else []},
    )


def pod(
    name: str, status: dict[str, Any], *, owner: tuple[str, str] | None = ("ReplicaSet", "web-1"), **spec: Any
) -> Pod:
    """Return a pod of 32 groups."""
    return Pod.model_validate({"metadata": metadata(name, owner=owner), "spec": pod_spec(**spec), "status": status})


def event(uid: str, message: str, moment: str) -> Event:
    """Return the event of a pod that could not be created."""
    about = {"kind": "StatefulSet", "name": uid, "uid": uid}
    return Event.model_validate(
        {"involvedObject": about, "reason": "FailedCreate", "message": message, "lastTimestamp": moment}
    )


def answer(capsys: pytest.CaptureFixture[str], reader: FakeClusterReader, text: str) -> dict[str, Any]:
    """Return the JSON form of the answer, and check that the exit status says the same."""
    status = show_explanation(reader, text, namespace="team-a", as_json=True)
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert status == (1 if facts["blocked"] else 0)
    return facts


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


def test_resource_has_the_name_that_the_nodes_give_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the chart renamed the resource, that name is looked for."""
    renamed = Node("a", NodeStatus(resource_name="example.com/slices"))
    reader = FakeClusterReader(controllers=[controller("Deployment", "web")], all_nodes=[renamed])
    assert answer(capsys, reader, "deploy/web")["message"].startswith("asks for no example.com/slices")


def test_kind_without_a_template_cannot_be_read() -> None:
    """A CronJob keeps its template deeper; without the operator's word there is no answer."""
    reader = FakeClusterReader(controllers=[("CronJob", Controller.model_validate({"metadata": metadata("web")}))])
    with pytest.raises(NotFound, match="no CTAWorkload tells of cronjob/web"):
        show_explanation(reader, "cronjob/web", namespace="team-a", as_json=False)


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: cpu"}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gates"}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """Return the status of a pod whose container waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "vllm", "state": state}]}


@pytest.mark.parametrize(
    ("status", "spec", "told", "blocked"),
    [
        ({"phase": "Running"}, {"nodeName": "a"}, "1 of 1 pods run", False),
        ({"phase": "Succeeded"}, {"nodeName": "a"}, "1 done", False),
        (
            {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "12 groups"},
            {},
            "1 failed (web: UnexpectedAdmissionError: 12 groups)",
            True,
        ),
        ({"conditions": [UNSCHEDULABLE]}, {}, "not scheduled: 0/3 nodes: cpu", True),
        ({"conditions": [GATED]}, {"schedulingGates": [{"name": GATE_PLACEMENT}]}, f"gate {GATE_PLACEMENT}", True),
        (waiting("ContainerCreating"), {"nodeName": "a"}, "1 starting", False),
        (
            waiting("RunContainerError", "MPS of GPU-1 is not ready"),
            {"nodeName": "a"},
            "1 starting (web: container vllm: RunContainerError: MPS of GPU-1 is not ready)",
            True,
        ),
    ],
)
def test_pod_in_each_of_its_states(
    capsys: pytest.CaptureFixture[str],
    status: dict[str, Any],
    spec: dict[str, Any],
    told: str,
    blocked: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """Wherever a pod stands on its way, the sentence says so and quotes whoever holds it."""
    reader = FakeClusterReader(all_pods=[pod("web", status, owner=None, **spec)])
    facts = answer(capsys, reader, "pod/web")
    assert told in facts["message"]
    assert facts["blocked"] is blocked


def test_gate_and_conditions_of_a_pod_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A pod's gates and those of its conditions that do not hold stand below the sentence."""
    gates = [{"name": GATE_PLACEMENT}, {"name": "example.com/other"}]
    status = {"conditions": [GATED, {"type": "PodReadyToStartContainers", "status": "True"}]}
    reader = FakeClusterReader(all_pods=[pod("web", status, owner=None, schedulingGates=gates)])
    facts = answer(capsys, reader, "pod/web")
    assert f"Scheduling gates that hold it: {GATE_PLACEMENT}, example.com/other." in facts["remarks"]
    assert [(one["type"], one["reason"]) for one in facts["conditions"] if one["status"] == "False"] == [
        ("Placed", "Waiting"),
        ("PodScheduled", "SchedulingGated"),
    ]


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (
            '[{"flag": "--gpu-memory-utilization", "from": null, "to": "0.2274", "why": "fits 35532 MiB"}]',
            "Argument changed at admission: --gpu-memory-utilization from unset to 0.2274 (fits 35532 MiB).",
        ),
        ("free text", "Arguments changed at admission: free text"),
        ('{"flag": "--x"}', 'Arguments changed at admission: {"flag": "--x"}'),
    ],
)
def test_changed_arguments_are_told(capsys: pytest.CaptureFixture[str], annotation: str, told: str) -> None:
    """What admission changed is told from the pod's annotation; another form of it is shown as it is."""
    aligned = Pod.model_validate(
        {"metadata": metadata("web", annotations={ANNOTATION_ALIGNMENT: annotation}), "spec": pod_spec()}
    )
    assert told in answer(capsys, FakeClusterReader(all_pods=[aligned]), "pod/web")["remarks"]


def test_groups_are_counted_as_the_scheduler_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Containers count together, an init container alone; the larger is what the pod needs."""
    init = [{"name": "warm", "resources": {"limits": {"nvidia.com/cta-group": "64"}}}]
    reader = FakeClusterReader(all_pods=[pod("web", {}, owner=None, initContainers=init)])
    assert answer(capsys, reader, "pod/web")["groupsPerPod"] == 64
