"""Nodes whose GPUs differ: MIG on some, a small display card, a superchip without memory of its own."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cta_group_core.profiles import profile_named
from cta_group_core.units import ComputeCapability
from cta_group_plugin.testing import AdmissionRefused, Ask
from fake_nvml.scenario import FakeGpu, Scenario, node_of
from http_probe import fetch, free_address
from nvml_running import nvml_node
from plugin_values import pod

_MIB = 1 << 20

T400 = FakeGpu(
    uuid="GPU-00000000-0000-4000-8000-00000000t400",
    product="NVIDIA T400 4GB",
    capability=ComputeCapability(7, 5),
    cores=384,
    memory_bytes=(4096 * _MIB, 0, 0),
    pci="00000000:41:00.0",
)
GB10 = FakeGpu(
    uuid="GPU-00000000-0000-4000-8000-00000000gb10",
    product="NVIDIA GB10",
    capability=ComputeCapability(12, 1),
    cores=6144,
    memory_bytes=None,
    pci="0000000F:01:00.0",
)


def with_mig(node: Scenario, on: set[int], pending: int | None = None) -> Scenario:
    """Return the node with MIG on for some GPUs, and waiting for a reset on one."""
    gpus = (
        replace(gpu, mig=(index in on, index in on or index == pending), cores=None if index in on else gpu.cores)
        for index, gpu in enumerate(node.gpus)
    )
    return replace(node, gpus=tuple(gpus))


def held_on(gpu: dict[str, Any]) -> list[tuple[str, int]]:
    """Return who holds how much of a GPU."""
    return [(one["pod"], one["groups"]) for one in gpu.get("allocations", [])]


async def test_mig_on_some_gpus_leaves_the_others_alone(nvml_library: Path) -> None:
    """Two of eight in MIG mode, one waiting for it: 768 groups. One more is switched on and off again while it idles.

    The ids of the others never change, nothing is restarted, and no id and no metric is a MIG device's. The one that
    waits serves until its reset: who is on it stays, and newcomers are let in.
    """
    node = node_of("h100-sxm", 8)
    address = free_address()
    metrics = f"--metrics-address={address}"
    async with nvml_node(nvml_library, with_mig(node, {0, 1}, pending=4), metrics) as running:
        await running.until_groups(768)
        before = set(running.kubelet.devices)
        for number in range(6):
            await running.kubelet.admit(pod(f"half-{number}"), [Ask("main", 64)])
        on_pending = [("half-4", 64), ("half-5", 64)]
        await running.until(lambda told: len(told.gpus()) == 8 and held_on(told.gpus()[4]) == on_pending)
        await running.until(lambda told: len(told.gpus()) == 8 and "MIG" in told.gpus()[0].get("withheld", ""))
        assert "switch MIG off" in running.gpus()[1]["withheld"]
        assert running.gpus()[4]["notice"].startswith("MIG will be on after its next reset")
        assert running.gpus()[4]["health"] == "Healthy"
        running.become(with_mig(node, {0, 1, 6}, pending=4))
        await running.until_groups(640)
        await running.until(lambda told: "MIG" in told.gpus()[6].get("withheld", ""))
        assert held_on(running.gpus()[4]) == on_pending
        assert set(running.kubelet.devices) < before
        running.become(with_mig(node, {0, 1}, pending=4))
        await running.until_groups(768)
        assert set(running.kubelet.devices) == before
        assert len(running.kubelet.registered) == 1
        assert not [text for text in before if not text.startswith("GPU-")]
        assert "MIG-" not in await asyncio.to_thread(fetch, f"http://{address}/metrics")


async def test_small_display_card_never_gets_a_job_of_the_big_ones(nvml_library: Path) -> None:
    """A T400 at index 0 before eight H200: 6 groups that no request of 8 lands on, and 1024 are the eight H200."""
    h200 = profile_named("h200")
    big = tuple(replace(FakeGpu.like(h200, 9 - index), uuid=f"GPU-0000000{index}") for index in range(1, 9))
    async with nvml_node(nvml_library, Scenario(gpus=(T400, *big))) as running:
        await running.until_groups(1030)
        await running.until(lambda told: len(told.gpus()) == 9)
        assert [running.gpus()[0][key] for key in ("capacity", "minimum", "step")] == [6, 2, 2]
        (small,) = await running.kubelet.admit(pod("small"), [Ask("main", 8)])
        assert small.answer.envs["NVIDIA_VISIBLE_DEVICES"] == "GPU-00000001"
        (quarter,) = await running.kubelet.admit(pod("quarter"), [Ask("main", 32)])
        assert quarter.answer.envs["NVIDIA_VISIBLE_DEVICES"] == "GPU-00000001"
        running.kubelet.delete(pod("small"))
        running.kubelet.delete(pod("quarter"))
        (all_of_it,) = await running.kubelet.admit(pod("large"), [Ask("main", 1024)])
        assert all_of_it.answer.envs["NVIDIA_VISIBLE_DEVICES"].split(",") == [gpu.uuid for gpu in big]
        (card,) = await running.kubelet.admit(pod("display"), [Ask("main", 6)])
        assert card.answer.envs["NVIDIA_VISIBLE_DEVICES"] == T400.uuid
        with pytest.raises(AdmissionRefused):
            await running.kubelet.admit(pod("none"), [Ask("main", 8)])


@pytest.mark.parametrize("setting", ["--gpu-exclude=T400", "--gpu-exclude=0", "--gpu-include=H200"])
async def test_card_is_left_out_by_product_or_index(nvml_library: Path, setting: str) -> None:
    """Whichever way it is said; the node is compatible all the same, since this is what was wanted."""
    node = replace(node_of("h200", 2), gpus=(T400, *node_of("h200", 2).gpus))
    async with nvml_node(nvml_library, node, setting) as running:
        await running.until_groups(256)
        await running.until(lambda told: len(told.gpus()) == 3)
        assert "left out" in running.gpus()[0]["withheld"]
        assert running.gpus()[0]["capacity"] == 0
        assert running.condition("Compatible")[0] == "True"


async def test_superchip_without_memory_of_its_own_waits_for_a_word(nvml_library: Path) -> None:
    """The other GPU serves; this one is shown with the setting that helps, and nothing is guessed."""
    async with nvml_node(nvml_library, Scenario(gpus=(GB10, node_of("rtx-4090", 2).gpus[1]))) as running:
        await running.until_groups(128)
        await running.until(lambda told: len(told.gpus()) == 2)
        superchip = running.gpus()[0]
        assert "shares the memory of the host" in superchip["withheld"]
        assert "memoryMiBOverride in gpus.overrides" in superchip["withheld"]
        assert (superchip["smCount"], superchip["capacity"], superchip["pciBusId"]) == (48, 0, "000f:01:00.0")
        assert (superchip["memoryMiB"], superchip["free"]) == (0, 0), "neither a guess nor the host's"
        assert running.condition("Compatible")[:2] == ("False", "GpuWithheld")
        assert running.process.returncode is None


async def test_superchip_serves_what_people_say_it_may(nvml_library: Path) -> None:
    """48 groups; half of them get exactly half of the memory that was named less the reserve."""
    override = json.dumps([{"gpu": "GB10", "memoryMiBOverride": 98304}])
    async with nvml_node(nvml_library, Scenario(gpus=(GB10,)), f"--gpu-override={override}") as running:
        await running.until_groups(48)
        (container,) = await running.kubelet.admit(pod("half"), [Ask("main", 24)])
        assert container.answer.envs["CTA_GROUP_MEMORY_MIB"] == str((98304 - 1024) // 2)
        await running.until(lambda told: told.condition("Compatible")[0] == "True")
        assert "host and GPU share one memory" in running.condition("Compatible")[2]
        assert running.gpus()[0]["smCount"] == 48


async def test_superchip_serves_without_a_word_where_memory_is_not_limited(nvml_library: Path) -> None:
    """Its SMs can be shared all the same; no container is told of memory that nobody knows, nor limited to it."""
    async with nvml_node(nvml_library, Scenario(gpus=(GB10,)), "--no-enforce-memory") as running:
        await running.until_groups(48)
        (container,) = await running.kubelet.admit(pod("half"), [Ask("main", 24)])
        told = container.answer.envs
        assert (told["CTA_GROUP_COUNT"], told["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"]) == ("24", "50")
        assert not [name for name in told if "MEM" in name]
        await running.until(lambda told: bool(told.gpus()) and bool(told.gpus()[0].get("allocations")))
        assert running.gpus()[0]["allocations"][0]["memoryMiB"] == 0
        assert "nobody's is limited here" in running.gpus()[0]["notice"]
        assert running.condition("Compatible")[0] == "True"
        running.kubelet.delete(pod("half"))
        (whole,) = await running.kubelet.admit(pod("whole"), [Ask("main", 48)])
        assert "CTA_GROUP_MEMORY_MIB" not in whole.answer.envs
