"""``kubectl cta explain`` about pods: how far they came, what holds them, what became of vLLM's arguments."""

from typing import Any

import pytest

from cta_group_cli.objects import Pod
from cta_group_core.names import (
    ANNOTATION_ALIGN,
    ANNOTATION_ALIGNMENT,
    ANNOTATION_ALIGNMENT_ADVICE,
    ANNOTATION_MULTI_CONTAINER,
    ANNOTATION_RUNTIME_ADVICE,
    GATE_PLACEMENT,
)
from explained_objects import answer, controller, pod, replica_set
from fake_cluster_reader import FakeClusterReader, metadata, pod_spec

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: cpu"}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gates"}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """Return the status of a pod whose container waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "vllm", "state": state}]}


def crashing(*, ready: bool) -> dict[str, Any]:
    """Return the status of a pod whose container was started again after an error."""
    last = {"terminated": {"reason": "Error", "exitCode": 1}}
    container = {"name": "vllm", "ready": ready, "state": {"running": {}}, "lastState": last}
    return {"phase": "Running", "containerStatuses": [container]}


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
        (
            {
                "phase": "Failed",
                "containerStatuses": [
                    {"name": "side", "state": {"terminated": {"exitCode": 0}}},
                    {"name": "vllm", "state": {"terminated": {"reason": "Error", "exitCode": 1}}},
                ],
            },
            {"nodeName": "a"},
            "1 failed (web: container vllm ended with exit code 1; its log says why: kubectl logs)",
            True,
        ),
        ({"conditions": [UNSCHEDULABLE]}, {}, "not scheduled: 0/3 nodes: cpu", True),
        ({"conditions": [GATED]}, {"schedulingGates": [{"name": GATE_PLACEMENT}]}, f"gate {GATE_PLACEMENT}", True),
        (waiting("ContainerCreating"), {"nodeName": "a"}, "1 starting", False),
        (crashing(ready=False), {"nodeName": "a"}, "1 crashing (web: container vllm ended with exit code 1", True),
        (crashing(ready=True), {"nodeName": "a"}, "1 of 1 pods run", False),
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


NOT_BELIEVED = f"Its annotation {ANNOTATION_ALIGNMENT} is not believed: the arguments do not say the same."


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (
            '[{"flag": "--gpu-memory-utilization", "from": null, "to": "0.2274", "why": "fits 35532 MiB"}]',
            "Argument changed at admission: --gpu-memory-utilization from unset to 0.2274 (fits 35532 MiB).",
        ),
        ("free text", NOT_BELIEVED),
        ('{"flag": "--x"}', NOT_BELIEVED),
        ('[{"flag": "--gpu-memory-utilization", "from": null, "to": "0.9", "why": "I say so"}]', NOT_BELIEVED),
    ],
)
def test_changed_arguments_are_told(capsys: pytest.CaptureFixture[str], annotation: str, told: str) -> None:
    """What admission changed is told from the pod's annotation, and only what its arguments say too."""
    spec = pod_spec()
    spec["containers"][0] |= {"command": ["vllm", "serve"], "args": ["m", "--gpu-memory-utilization=0.2274"]}
    aligned = Pod.model_validate(
        {"metadata": metadata("web", annotations={ANNOTATION_ALIGNMENT: annotation}), "spec": spec}
    )
    assert told in answer(capsys, FakeClusterReader(all_pods=[aligned]), "pod/web")["remarks"]


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        ({ANNOTATION_ALIGNMENT_ADVICE: "add --x=1"}, "vLLM's arguments were not changed: add --x=1."),
        ({ANNOTATION_RUNTIME_ADVICE: "set it to nvidia"}, "It has no runtime class: set it to nvidia."),
        (
            {ANNOTATION_ALIGN: "off"},
            "vLLM's arguments were not looked at: the pod has the annotation ctagroup.dev/align: off.",
        ),
        (
            {ANNOTATION_MULTI_CONTAINER: "yes"},
            "Ignored: annotation ctagroup.dev/multi-container: 'yes' is none of true, false.",
        ),
        (
            {"ctagroup.dev/alignn": "off"},
            "Ignored: annotation ctagroup.dev/alignn is not known; perhaps ctagroup.dev/align is meant.",
        ),
    ],
)
def test_arguments_that_were_not_changed_are_told(
    capsys: pytest.CaptureFixture[str], annotations: dict[str, str], told: str
) -> None:
    """What would fit and was not set, or that nobody looked, is told of the pod and, once, of its Deployment."""
    made = [pod(f"web-1-{name}", {"phase": "Running"}) for name in "ab"]
    for one in made:
        one.metadata.annotations.update(annotations)
    reader = FakeClusterReader(controllers=[controller("Deployment", "web"), replica_set("web-1")], all_pods=made)
    assert told in answer(capsys, reader, "pod/web-1-a")["remarks"]
    assert answer(capsys, reader, "deploy/web")["remarks"].count(told) == 1


def test_groups_are_counted_as_the_scheduler_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Containers count together, an init container alone; the larger is what the pod needs."""
    init = [{"name": "warm", "resources": {"limits": {"nvidia.com/cta-group": "64"}}}]
    reader = FakeClusterReader(all_pods=[pod("web", {}, owner=None, initContainers=init)])
    assert answer(capsys, reader, "pod/web")["groupsPerPod"] == 64
    init[0]["restartPolicy"] = "Always"  # a sidecar, which runs beside them
    reader = FakeClusterReader(all_pods=[pod("web", {}, owner=None, initContainers=init)])
    assert answer(capsys, reader, "pod/web")["groupsPerPod"] == 96
