"""What the plugin's CDI devices do to a container, and what kubelet is answered when they are used."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import GpuRefused
from cta_group_core.ids import GroupId
from cta_group_core.profiles import PROFILES
from cta_group_plugin.allocation import checked_gpus
from cta_group_plugin.answers import CdiRules, ContainerAnswer, answer_for, slice_given
from cta_group_plugin.cdi import file_name, specification
from cta_group_plugin.inventory import Offer, offer_of
from plugin_values import RESERVE_MIB, RULES, gpu, groups, inventory, offer, uuid_of

PIPE = f"/run/cta-group/mps/{uuid_of(0)}/pipe"
OWN_DEVICE_FILES = CdiRules(gpu_kind="")


def edits(made: Offer, cdi: CdiRules | None = None) -> dict[str, Any]:
    """Return the edits of each device of the first GPU, by the device's name."""
    read = json.loads(specification(made.served[0], RULES, cdi or CdiRules()))
    assert (read["cdiVersion"], read["kind"]) == ("0.3.0", "ctagroup.dev/slice")
    return {device["name"]: device["containerEdits"] for device in read["devices"]}


def answered(made: Offer, ids: frozenset[GroupId], cdi: CdiRules | None = None) -> ContainerAnswer:
    """Return what kubelet is answered for ``ids`` when CDI devices are used."""
    return answer_for(checked_gpus(made, {}, ids), ids, replace(RULES, cdi=cdi or CdiRules()))


def test_quarter_of_an_h100_as_a_device() -> None:
    """The device carries every limit and number of its slice and the pipe folder, and keeps the NVIDIA runtime out."""
    given_to_container = edits(offer(1))[f"{uuid_of(0)}-32"]
    assert sorted(given_to_container["env"]) == [
        "CTA_GROUP_CAPACITY=128",
        "CTA_GROUP_COUNT=32",
        f"CTA_GROUP_GPU_UUID={uuid_of(0)}",
        "CTA_GROUP_MEMORY_MIB=19996",
        "CTA_GROUP_SM_COUNT=32",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25",
        f"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT={uuid_of(0)}=19996M",
        f"CUDA_MPS_PIPE_DIRECTORY={PIPE}",
        "NVIDIA_VISIBLE_DEVICES=void",
    ]
    (mount,) = given_to_container["mounts"]
    assert (mount["hostPath"], mount["containerPath"]) == (PIPE, PIPE)
    assert "ro" in mount["options"]
    assert "deviceNodes" not in given_to_container


def test_quarter_of_an_h100_as_an_answer() -> None:
    """Kubelet stores names only: ours for the slice, and the toolkit's for the GPU and its driver."""
    answer = answered(offer(1), groups(0, range(32)))
    assert answer.cdi_devices == (f"ctagroup.dev/slice={uuid_of(0)}-32", f"nvidia.com/gpu={uuid_of(0)}")
    assert answer.environment == {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert answer.read_only_mounts == ()


def test_two_whole_gpus_as_an_answer() -> None:
    """Each whole GPU is a device, and the numbers are sums, which no single device could say."""
    answer = answered(offer(3), groups(2, range(128)) | groups(1, range(128)))
    assert answer.cdi_devices == (
        f"ctagroup.dev/slice={uuid_of(1)}-128",
        f"ctagroup.dev/slice={uuid_of(2)}-128",
        f"nvidia.com/gpu={uuid_of(1)}",
        f"nvidia.com/gpu={uuid_of(2)}",
    )
    assert answer.environment["CTA_GROUP_COUNT"] == "256"
    assert answer.environment["CTA_GROUP_GPU_UUID"] == f"{uuid_of(1)},{uuid_of(2)}"


def test_whole_gpu_as_a_device_says_no_number() -> None:
    """Two such devices in one container would overwrite each other's numbers; there are no limits to protect."""
    assert edits(offer(1))[f"{uuid_of(0)}-128"] == {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}


def test_own_devices_bring_the_device_files() -> None:
    """Without the toolkit's devices ours open the GPU's own file and those that CUDA needs, and no other GPU's."""
    made = offer_of(inventory(replace(gpu(0), minor=3)), reserve_mib=RESERVE_MIB)
    for device in edits(made, OWN_DEVICE_FILES).values():
        paths = [node["path"] for node in device["deviceNodes"]]
        assert paths == ["/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm"]
    assert answered(made, groups(0, range(8)), OWN_DEVICE_FILES).cdi_devices == (f"ctagroup.dev/slice={uuid_of(0)}-8",)


def test_gpu_whose_device_file_is_unknown_has_no_specification() -> None:
    """A device without its file would start a container without a GPU; with the toolkit's devices none is needed."""
    made = offer(1)
    with pytest.raises(GpuRefused, match="device file"):
        specification(made.served[0], RULES, OWN_DEVICE_FILES)
    assert edits(made)


def test_simulated_gpu_has_limits_but_no_device() -> None:
    """There is nothing to open, and nobody who describes it."""
    made = offer_of(inventory(replace(gpu(0), minor=0)), reserve_mib=RESERVE_MIB)
    simulated = CdiRules(gpu_kind="nvidia.com/gpu", is_simulated=True)
    assert not any("deviceNodes" in device for device in edits(made, simulated).values())
    assert not any("deviceNodes" in device for device in edits(made, replace(simulated, gpu_kind="")).values())
    assert answered(made, groups(0, range(8)), simulated).cdi_devices == (f"ctagroup.dev/slice={uuid_of(0)}-8",)


@given(st.sampled_from(sorted(PROFILES)), st.data())
def test_every_size_that_can_be_answered_is_a_device_with_the_same_slice(name: str, data: st.DataObject) -> None:
    """What an answer names is described, and gives what the environment would give, but for the visible devices."""
    made = offer(1, name)
    served = made.served[0]
    units = served.units
    size = data.draw(st.sampled_from(range(units.minimum, units.capacity + 1, units.step)))
    answer = answered(made, groups(0, range(size)))
    described = edits(made)
    assert len(described) == (units.capacity - units.minimum) // units.step + 1
    device = described[answer.cdi_devices[0].partition("=")[2]]
    told = dict(line.partition("=")[::2] for line in device["env"])
    by_environment = slice_given(served, size, RULES)
    assert {**answer.environment, **told} == {**by_environment.environment, "NVIDIA_VISIBLE_DEVICES": "void"}
    assert [mount["hostPath"] for mount in device.get("mounts", [])] == [
        str(it) for it in by_environment.read_only_mounts
    ]


def test_file_name_is_one_that_a_runtime_reads() -> None:
    """Runtimes read ``*.json``; the name says whose it is and does not change."""
    assert file_name(uuid_of(0)) == f"ctagroup.dev-slice_{uuid_of(0)}.json"
