"""CTANode as it is written and read back."""

import json
from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from cta_group_core.nodes import (
    Allocation,
    GpuHealth,
    GpuStatus,
    NodeStatus,
    PcieLink,
)
from cta_group_core.placement import choose_gpus
from cta_group_core.rooms import GpuRoom, largest_fit
from gpu_strategies import H200, T400, nodes, room, uuid_of


def gpu_status(gpu: GpuRoom, **changes: Any) -> GpuStatus:
    """Return the published form of a GPU with some room, changed as said."""
    facts: dict[str, Any] = {
        "uuid": gpu.uuid,
        "index": gpu.index,
        "product": "NVIDIA H200",
        "compute_capability": "9.0",
        "sm_count": gpu.units.sm_count,
        "capacity": gpu.units.capacity,
        "minimum": gpu.units.minimum,
        "step": gpu.units.step,
        "free": gpu.free,
    }
    return GpuStatus(**{**facts, **changes})


def node_status(*gpus: GpuStatus) -> NodeStatus:
    """Return a node with these GPUs."""
    return NodeStatus(resource_name="nvidia.com/cta-group", gpus=gpus)


@given(nodes())
def test_status_reads_back_what_was_written(rooms: list[GpuRoom]) -> None:
    """What the plugin publishes as JSON is what the operator and the command line read, to the last field."""
    status = node_status(*(gpu_status(gpu) for gpu in rooms)).with_totals()
    assert NodeStatus.model_validate(json.loads(json.dumps(status.as_api()))) == status


@given(nodes())
def test_published_room_is_the_room_that_placement_sees(rooms: list[GpuRoom]) -> None:
    """The operator plans from the object with the very same values that the plugin decides with."""
    assert node_status(*(gpu_status(gpu) for gpu in rooms)).rooms() == rooms


def test_equal_gpus_share_their_units() -> None:
    """A decision compares the GPUs of a whole cluster: equal ones have the very same units."""
    first, second = node_status(gpu_status(room(0, 8)), gpu_status(room(1, 16))).rooms()
    assert first.units is second.units


@given(nodes())
def test_totals_are_those_of_the_gpus(rooms: list[GpuRoom]) -> None:
    """Capacity, allocatable, free and the largest request of a healthy node are sums and the best of its GPUs."""
    status = node_status(*(gpu_status(gpu) for gpu in rooms)).with_totals()
    assert status.capacity == status.allocatable == sum(gpu.units.capacity for gpu in rooms)
    assert status.free == sum(gpu.free for gpu in rooms)
    assert status.largest_fit == largest_fit(rooms)


def test_unhealthy_and_withheld_gpus_are_capacity_but_not_room() -> None:
    """Groups of an unhealthy or withheld GPU count as capacity; nothing of them can be promised."""
    status = node_status(
        gpu_status(room(0, 128), health=GpuHealth.UNHEALTHY, health_reason="XID 79"),
        gpu_status(room(1, 128), withheld="served by nvidia.com/gpu too"),
        gpu_status(room(2, 64)),
    ).with_totals()
    assert (status.capacity, status.allocatable, status.free, status.largest_fit) == (384, 128, 64, 64)
    assert [gpu.index for gpu in choose_gpus(status.rooms(), 64)] == [2]


def test_gpu_that_offers_nothing_is_a_fact_without_room() -> None:
    """A GPU that was refused at discovery is published with the reason, and no rule ever sees it."""
    refused = GpuStatus(
        uuid="", index=0, product="NVIDIA X", compute_capability="13.0", withheld="compute capability 13.0 is not known"
    )
    assert not refused.is_placeable
    assert node_status(refused).with_totals().rooms() == []


def test_names_in_the_api_are_camel_case_with_the_unit_as_it_is_written() -> None:
    """Fields are camelCase, MiB keeps its spelling, and unknown facts are left out."""
    link = PcieLink(width=8, width_max=16, generation=4, generation_max=5)
    holder = Allocation(namespace="team-a", pod="vllm-0", container="vllm", groups=32, memory_mib=35532)
    api = gpu_status(room(0, 96), link=link, allocations=(holder,), foreign_memory_mib=12, reserve_mib=1024).as_api()
    assert api["link"] == {"width": 8, "widthMax": 16, "generation": 4, "generationMax": 5}
    assert api["allocations"] == [
        {"namespace": "team-a", "pod": "vllm-0", "container": "vllm", "groups": 32, "memoryMiB": 35532}
    ]
    assert {"foreignMemoryMiB": 12, "reserveMiB": 1024, "smCount": 132, "largestFit": 0}.items() <= api.items()
    assert "numaNode" not in api


def test_fields_of_a_newer_plugin_are_ignored() -> None:
    """Parts are upgraded one after the other: what this version does not know is no error, at any depth."""
    api = json.loads(json.dumps(node_status(gpu_status(room(0, 128))).as_api()))
    api["newField"] = {"a": 1}
    api["gpus"][0]["newFact"] = 7
    assert NodeStatus.model_validate(api).gpus[0].free == 128


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("free", 129, "129 groups cannot be free of 128"),
        ("free", -1, "-1 groups cannot be free of 128"),
        ("capacity", 136, "capacity=136"),
        ("capacity", -8, "capacity=-8"),
        ("step", 0, "step=0"),
        ("minimum", 0, "minimum=0"),
        ("capacity", 0, "128 groups cannot be free of a capacity of 0"),
        ("uuid", "MIG-1", "'MIG-1'"),
        ("health", "Sleepy", "Sleepy"),
        ("free", "many", "many"),
    ],
)
def test_numbers_that_cannot_be_true_are_refused_when_read(field: str, value: object, told: str) -> None:
    """An object that contradicts itself gives an error that names the place and the value, not a wrong plan."""
    api = json.loads(json.dumps(node_status(gpu_status(room(0, 128))).as_api()))
    api["gpus"][0][field] = value
    with pytest.raises(ValidationError) as refused:
        NodeStatus.model_validate(api)
    assert "gpus.0" in str(refused.value)
    assert told in str(refused.value)


def test_display_card_is_read_with_its_own_units() -> None:
    """Each GPU of a mixed node keeps its own minimum and step."""
    status = node_status(gpu_status(room(0, 6, T400)), gpu_status(room(1, 128)))
    assert [gpu.units for gpu in status.rooms()] == [T400, H200]
    assert [gpu.uuid for gpu in status.rooms()] == [uuid_of(0), uuid_of(1)]


def test_what_was_written_for_an_earlier_machine_of_the_name_is_told_apart() -> None:
    """By the uid of the Node; one that says nothing is taken as it is."""
    status = NodeStatus.model_validate({"resourceName": "nvidia.com/cta-group", "nodeUID": "a"})
    assert status.is_of("a")
    assert not status.is_of("b")
    assert NodeStatus(resource_name="nvidia.com/cta-group").is_of("b")
    assert status.as_api()["nodeUID"] == "a"
