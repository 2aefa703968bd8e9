"""``kubectl cta doctor`` about nodes: driver, GPUs, kubelet, conditions, and what runs there."""

from dataclasses import replace
from typing import Any

import pytest

from cta_group_cli.doctor.gather import gather
from cta_group_cli.errors import ClusterUnavailable
from cta_group_cli.ports import Node, Unreadable
from cta_group_core.compatibility.findings import Severity
from cta_group_core.nodes import Condition, ConditionStatus, GpuHealth, PcieLink
from doctor_checkup import WELL, found, on_node, only
from fake_doctor_reader import (
    gpu,
    machine,
    release_pod,
    status,
    tenant,
    webhook,
    workload,
)
from gpu_strategies import uuid_of

_GATES = {"ResourceHealthStatus": False, "ResourceHealthStatusMessage": False}


def test_kubelet_that_writes_statuses_again_and_again() -> None:
    """Versions 1.36 and 1.37 do, unless both gates are off."""
    reader = WELL.but(all_machines=[machine("gpu-1", kubelet="v1.37.2")])
    told = only(reader)
    assert "kubernetes#142293" in told.finding.sentence
    assert "ResourceHealthStatus=false,ResourceHealthStatusMessage=false" in told.finding.remedy
    assert found(reader.but(gates={"gpu-1": _GATES})) == []


def test_only_some_kubelets_are_asked() -> None:
    """Each costs a call through the API server, so sixteen are asked, and the rest is said."""
    names = [f"gpu-{number:02}" for number in range(20)]
    reader = WELL.but(
        all_nodes=[Node(name, status()) for name in names],
        all_machines=[machine(name, kubelet="v1.37.2") for name in names],
    )
    facts = gather(reader, None)
    assert len(facts.gates) == 16
    assert "feature gates of kubelet on 4 more nodes" in facts.unread[0]


@pytest.mark.parametrize(
    ("changes", "subject", "words"),
    [
        ({"driver_version": "470.57.02"}, "driver", "R470 does not tell"),
        ({"cuda_version": "11.4", "driver_version": "580.159.04"}, "enforcement", "memory of slices is not limited"),
    ],
)
def test_driver_against_the_table(changes: dict[str, str], subject: str, words: str) -> None:
    """What each way of limiting needs of driver and CUDA is looked up."""
    told = found(on_node(**changes).but(tenants=[]))
    assert [one.finding.sentence for one in told if one.finding.subject == subject and words in one.finding.sentence]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"compute_mode": "Default"}, "shared in compute mode Default"),
        ({"compute_mode": "Prohibited"}, "no program can use it"),
        ({"link": PcieLink(width=4, width_max=16, generation=5, generation_max=5)}, "4 of 16 lanes"),
        ({"foreign_memory_mib": 3000}, "use 3000 MiB of its memory"),
        ({"persistence_mode": False}, "persistence mode is off"),
        ({"mig_mode": "Enabled", "withheld": "MIG mode is on", "free": 96}, "MIG is on"),
    ],
)
def test_a_gpu_that_is_not_in_order(changes: dict[str, Any], words: str) -> None:
    """Compute mode, link, foreign memory, persistence and MIG, each once."""
    told = only(on_node(gpu(**changes)))
    assert words in told.finding.sentence
    assert told.nodes == ["gpu-1"]


def test_a_node_whose_compute_modes_are_untouched_on_purpose_is_in_order() -> None:
    """The setting of the MPS supervisor says that Default is meant."""
    workloads = [one for one in WELL.workloads if one.metadata.name != "cta-group-mps"]
    reader = on_node(gpu(compute_mode="Default"))
    assert found(reader.but(workloads=[*workloads, workload("mps", "mps", "--compute-mode=untouched")])) == []


def test_more_clients_than_the_driver_takes() -> None:
    """The plugin's own setting is compared with the driver's limit."""
    workloads = [one for one in WELL.workloads if one.metadata.name != "cta-group-plugin"]
    told = only(WELL.but(workloads=[*workloads, workload("plugin", "run", "--max-clients=60")]))
    assert "takes 48 clients with CUDA 13.0" in told.finding.sentence


def test_unhealthy_gpu_says_why_and_how_it_comes_back() -> None:
    """The reason is the plugin's own, and there is one finding, not one for the condition too."""
    condition = Condition(type="GPUsHealthy", status=ConditionStatus.FALSE, reason="GpuUnhealthy", message="XID 79")
    told = only(on_node(gpu(health=GpuHealth.UNHEALTHY, health_reason="XID 79"), conditions=(condition,)))
    assert "XID 79" in told.finding.sentence
    assert f"nvidia-smi --gpu-reset -i {uuid_of(0)}" in told.finding.remedy


@pytest.mark.parametrize(
    ("health", "severity"), [(GpuHealth.SUSPECT, Severity.WARNING), (GpuHealth.RECOVERING, Severity.INFO)]
)
def test_a_gpu_on_its_way(health: GpuHealth, severity: Severity) -> None:
    """Quarantine asks to look again; one that recovers needs nobody."""
    condition = Condition(type="GPUsHealthy", status=ConditionStatus.FALSE, reason=f"Gpu{health.value}", message="XID")
    told = only(on_node(gpu(health=health, health_reason="XID 48"), conditions=(condition,)))
    assert (told.finding.severity, "XID 48" in told.finding.sentence) == (severity, True)


def test_a_daemon_that_is_not_ready_is_told_once() -> None:
    """Its GPU is well, so the condition of MPS has the word."""
    condition = Condition(type="MPSReady", status=ConditionStatus.FALSE, reason="NotReady", message="FAULT")
    told = only(on_node(gpu(health=GpuHealth.MPS_NOT_READY, health_reason="FAULT"), conditions=(condition,)))
    assert told.finding.subject == "condition MPSReady"


def test_a_driver_that_does_not_answer() -> None:
    """Nobody knows how the GPUs are, which is a finding too."""
    condition = Condition(
        type="GPUsHealthy", status=ConditionStatus.UNKNOWN, reason="DriverDoesNotAnswer", message="hangs for 30 s"
    )
    assert "hangs for 30 s" in only(on_node(conditions=(condition,))).finding.sentence


def test_withheld_gpu_is_told_with_its_reason() -> None:
    """A GPU that offers nothing is a finding that says what the plugin says."""
    told = only(on_node(gpu(), gpu(1, withheld="compute capability 13.0 is not known; set smCountOverride")))
    assert "set smCountOverride" in told.finding.sentence


@pytest.mark.parametrize(
    "kind", ["Registered", "MPSReady", "ClientsLimited", "Compatible", "HoldersKnown", "SomethingNew"]
)
def test_a_condition_that_does_not_hold(kind: str) -> None:
    """Its reason and message are told, also of a condition that this version does not know."""
    condition = Condition(
        type=kind, status=ConditionStatus.FALSE, reason="Why", message="in words", last_transition_time="2026-12-01"
    )
    told = only(on_node(conditions=(condition,)))
    assert told.finding.subject == f"condition {kind}"
    assert told.finding.sentence == "Why since 2026-12-01: in words"


def test_a_node_without_a_gpu_needs_no_driver() -> None:
    """In a mixed cluster the plugin is everywhere; only a node that shows a GPU misses its driver."""
    nothing = status(driver_version=None, cuda_version=None).model_copy(update={"gpus": (), "allocatable": 0})
    idle = machine("gpu-1", {"nvidia.com/cta-group": "0"})
    reader = WELL.but(all_nodes=[Node("gpu-1", nothing)], all_machines=[idle], tenants=[])
    assert found(reader) == []
    assert only(reader, "gpu-1").finding.severity is Severity.INFO
    shows = machine("gpu-1", {"nvidia.com/cta-group": "0"}, labels={"nvidia.com/gpu.present": "true"})
    assert "no NVIDIA driver answers" in only(reader.but(all_machines=[shows])).finding.sentence


def test_two_plugins_offer_one_gpu() -> None:
    """More GPUs offered than there are means that one is given out twice; a shared-out node is in order."""
    twice = machine("gpu-1", {"nvidia.com/gpu": "1"})
    assert "a GPU is given out twice" in only(WELL.but(all_machines=[twice])).finding.sentence
    reader = on_node(gpu(), gpu(1, withheld="left out because gpus.include does not name it"))
    shared_out = machine("gpu-1", {"nvidia.com/gpu": "1", "nvidia.com/cta-group": "128"})
    assert found(reader.but(all_machines=[shared_out])) == []


def test_kubelet_and_plugin_disagree() -> None:
    """What kubelet offers is compared with what the plugin says."""
    told = only(WELL.but(all_machines=[machine("gpu-1", {"nvidia.com/cta-group": "0"})]))
    assert told.finding.sentence == "it offers 0 nvidia.com/cta-group, and the plugin 128"


def test_a_node_that_is_gone() -> None:
    """Its CTANode is told, with what removes it."""
    told = only(WELL.but(all_machines=[machine("gpu-2")], tenants=[]))
    assert told.finding.remedy == "kubectl delete ctanode gpu-1"


def test_a_node_that_another_machine_took_over() -> None:
    """What the earlier one's plugin wrote is not believed by the operator, so it is told."""
    told = only(on_node(node_uid="earlier"))
    assert "an earlier machine of this name" in told.finding.sentence
    assert found(on_node(node_uid="uid-of-gpu-1")) == []


def test_a_plugin_that_publishes_nothing() -> None:
    """A pod that is ready and has written no CTANode is told."""
    told = found(WELL.but(all_nodes=[], tenants=[], rehearsal=ClusterUnavailable("no size is known")))
    assert [one.finding.sentence for one in told] == ["a pod of the plugin is there and has published nothing"]


def test_an_object_of_another_version() -> None:
    """What cannot be read is told by its field."""
    told = only(WELL.but(all_nodes=[Unreadable("gpu-1", "gpus.0.health: unknown")]))
    assert "gpus.0.health" in told.finding.sentence


def test_an_image_that_the_driver_does_not_run() -> None:
    """The images of the pods that ask for groups are compared with their node's driver."""
    old = WELL.but(all_nodes=[Node("gpu-1", status(driver_version="550.54.15", cuda_version="12.4"))])
    sentences = [one.finding.sentence for one in found(old.but(tenants=[tenant(image="vllm/vllm-openai:v0.27.1")]))]
    assert any("needs driver R580 or newer; this node has R550" in sentence for sentence in sentences)
    assert not any("R580" in one.finding.sentence for one in found(old.but(tenants=[tenant(node="gpu-2")])))


def test_a_node_by_name_tells_of_nothing_else() -> None:
    """What is wrong with the release or with other nodes is left out."""
    reader = WELL.but(
        all_nodes=[Node("gpu-1", status()), Node("gpu-2", status(gpu(persistence_mode=False)))],
        all_machines=[machine("gpu-1"), machine("gpu-2")],
        all_webhooks=[webhook(""), webhook(mutates=False)],
    )
    assert found(reader, "gpu-1") == []
    assert [one.nodes for one in found(replace(reader, pods=[release_pod("plugin", "gpu-2")]), "gpu-2")] == [["gpu-2"]]
