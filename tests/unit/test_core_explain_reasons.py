"""Every reason that a workload does not run for, with the exact sentence that people read (in a file of its own)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml

from chart_rendering import ROOT
from cta_group_core.denials import parse_denial
from cta_group_core.ending_pods import EndingPod
from cta_group_core.explain import CreateFailure, PodFacts, Stage, WorkloadFacts, explain
from cta_group_core.explain_quota import QuotaFacts
from cta_group_core.ids import NodeName
from cta_group_core.moves import tenants_by_gpu
from cta_group_core.node_choice import NodeOffer, refusal
from cta_group_core.nodes import Allocation, GpuHealth, GpuStatus, NodeStatus
from cta_group_core.outages import describe_outages
from cta_group_core.scheduling import NodeFacts, PodTerms, Taint

SENTENCES: dict[str, str] = yaml.safe_load((ROOT / "tests/fixtures/explain/sentences.yaml").read_text())
RESOURCE = "nvidia.com/cta-group"
KEY = f"requests.{RESOURCE}"
CREATING = 'Error creating: pods "web-5d8-abc" is forbidden: '


def refused(text: str, quota: QuotaFacts | None = None, *, pods: Sequence[Stage] = ()) -> WorkloadFacts:
    """Return two wanted pods of 32 groups, of which the API server refuses what is missing."""
    failure = CreateFailure(text, parse_denial(text, RESOURCE))
    there = tuple(PodFacts(f"web-{place}", stage) for place, stage in enumerate(pods))
    return WorkloadFacts(2, 32, there, failure, quota)


def exceeded(quota: QuotaFacts | None = None, **more: Any) -> WorkloadFacts:
    """Return one whose second pod a ResourceQuota of 64 refuses, with 40 used."""
    text = f"{CREATING}exceeded quota: cta-group, requested: {KEY}=32, used: {KEY}=40, limited: {KEY}=64"
    return refused(text, quota, pods=[Stage.RUNNING], **more)


TEAM = QuotaFacts("team-a", groups=64, used=40, share=64, share_used=40)
COHORT = replace(TEAM, cohort="research", groups=96, reachable=56, share=56, share_used=40)

POLICY = (
    "ValidatingAdmissionPolicy 'cta-group-units' with binding 'cta-group-units' denied request: "
    "container main asks for nvidia.com/cta-group: 12; ask for 8 to 128 in steps of 8 (one GPU)"
)
WEBHOOK = (
    'Error creating: admission webhook "servers.ctagroup.dev" denied the request: vLLM asks for tensor parallel '
    "size 2, and a slice of 32 groups is on one GPU, where only one rank runs: use size 1"
)
UNCOUNTED = f"{CREATING}status unknown for quota: cta-group, resources: {KEY}"
NO_CPU = f"{CREATING}exceeded quota: compute, requested: cpu=2, used: cpu=9, limited: cpu=10"
OLD = EndingPod("old", 32, "2026-01-01T00:00:30Z")
REFUSALS = {
    "quota": (exceeded(TEAM), "QuotaExceeded"),
    "quota-by-hand": (exceeded(), "QuotaExceeded"),
    "quota-ending": (exceeded(replace(TEAM, ending=[OLD])), "QuotaExceeded"),
    "quota-lent": (exceeded(COHORT), "QuotaLent"),
    "quota-moving": (exceeded(replace(TEAM, groups=256, namespaces=2)), "QuotaMoving"),
    "quota-room-again": (exceeded(replace(TEAM, share=128)), "QuotaRetry"),
    "quota-not-counted": (refused(UNCOUNTED, TEAM), "QuotaNotCounted"),
    "quota-of-cpu": (refused(NO_CPU, TEAM), "OtherQuotaExceeded"),
    "policy": (refused(CREATING + POLICY), "CreateRefused"),
    "webhook": (refused(WEBHOOK), "CreateRefused"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_pods_that_cannot_be_created(name: str) -> None:
    """Which quota, with its numbers, or who refuses, in that one's words."""
    facts, reason = REFUSALS[name]
    answer = explain(facts)
    assert (answer.admissible.reason, answer.message) == (reason, SENTENCES[name])


def a_gpu(index: int, *held: tuple[str, int], **changes: Any) -> GpuStatus:
    """Return an H100 with pods on it."""
    allocations = tuple(
        Allocation(namespace="team-b", pod=pod, container="main", groups=groups, memory_mib=groups * 600)
        for pod, groups in held
    )
    free = 128 - sum(groups for _, groups in held)
    facts = {"sm_count": 132, "capacity": 128, "minimum": 8, "step": 8, "free": free, "allocations": allocations}
    return GpuStatus(uuid=f"GPU-{index}", index=index, product="H100", compute_capability="9.0", **{**facts, **changes})


def an_offer(*gpus: GpuStatus, name: str = "node-1", closed: str = "", **facts: Any) -> NodeOffer:
    """Return a node as placement sees it."""
    node = NodeFacts(NodeName(name), **{"pods": 100, "groups": 1024, **facts})
    status = NodeStatus(resource_name=RESOURCE, gpus=gpus)
    held = ((gpu.gpu_uuid, one.namespace, one.pod, one.groups) for gpu in gpus for one in gpu.allocations)
    return NodeOffer(
        node, tuple(status.rooms()), closed=closed, out=describe_outages(gpus), tenants=tenants_by_gpu(held)
    )


SICK = {"health": GpuHealth.UNHEALTHY, "health_reason": "XID 79: reboot the node"}
NO_MPS = {"health": GpuHealth.MPS_NOT_READY, "health_reason": "started anew in 20 s"}
AWAY = "its kubelet does not know the plugin now (it is restarting)"
ROOMS = {
    "fragmentation": (96, an_offer(a_gpu(0, ("a", 64)), a_gpu(1, ("b", 40), ("c", 24)))),
    "full": (32, an_offer(a_gpu(0, ("a", 128)))),
    "capacity": (512, an_offer(a_gpu(0), a_gpu(1))),
    "step": (12, an_offer(a_gpu(0))),
    "health": (96, an_offer(a_gpu(0, ("a", 128)), a_gpu(1, **SICK))),
    "mps": (96, an_offer(a_gpu(0, **NO_MPS))),
    "kubelet": (32, an_offer(a_gpu(0), closed=AWAY)),
    "cordon": (32, an_offer(a_gpu(0), unschedulable=True)),
    "taint": (32, an_offer(a_gpu(0), taints=(Taint("team", "b", "NoSchedule"),))),
    "cpu": (32, an_offer(a_gpu(0), cpu_milli=1000)),
    "nodes": (32, None),
}


@pytest.mark.parametrize("name", ROOMS)
def test_pods_that_find_no_room(name: str) -> None:
    """What was asked, what is free on each GPU, what would fit, what is out, and which pod is in the way."""
    groups, offer = ROOMS[name]
    terms = PodTerms(cpu_milli=2000 if name == "cpu" else 0)
    words = str(refusal(terms, (groups,), [offer] if offer is not None else []))
    told = explain(WorkloadFacts(1, groups, [PodFacts("web-0", Stage.NO_ROOM, words)]))
    assert (told.placed.reason, told.message) == ("NoRoom", SENTENCES[name])


STAGES = {
    "waiting": (Stage.WAITING, ""),
    "foreign-gate": (Stage.WAITING, "other scheduling gates must go first: kueue.x-k8s.io/admission"),
    "unschedulable": (Stage.UNSCHEDULED, "0/3 nodes are available: 3 node(s) had volume node affinity conflict."),
    "image": (Stage.STARTING, 'ImagePullBackOff: Back-off pulling image "x"'),
    "mps-ceiling": (
        Stage.STARTING,
        "CreateContainerConfigError: GPU-1: its MPS daemon allows 10 % of the SMs, and 25 % are needed",
    ),
    "crash": (Stage.CRASHING, "container vllm ended with exit code 1; its log says why: kubectl logs --previous"),
    "refused-by-kubelet": (Stage.FAILED, "UnexpectedAdmissionError: no GPU of this node has room for 96"),
    "done": (Stage.DONE, ""),
    "running": (Stage.RUNNING, ""),
}


@pytest.mark.parametrize("name", STAGES)
def test_how_far_a_pod_has_come(name: str) -> None:
    """What scheduler and kubelet say is passed through, with how many pods run."""
    stage, words = STAGES[name]
    assert explain(WorkloadFacts(1, 32, [PodFacts("web-0", stage, words)])).message == SENTENCES[name]


def test_pods_that_came_past_admission() -> None:
    """It is said after everything else, since it explains the rest."""
    facts = WorkloadFacts(1, 32, [PodFacts("web-0", Stage.RUNNING)], slipped=1)
    assert explain(facts).message == SENTENCES["slipped"]


def test_every_sentence_is_made() -> None:
    """None of the file is left over."""
    assert set(SENTENCES) == {*REFUSALS, *ROOMS, *STAGES, "slipped"}
