"""Who is on a GPU, by the whole plugin process over NVIDIA's binding and a fake library: late memory, limits left."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import grpc.aio
import pytest

from cta_group_plugin.testing import Admitted, Ask
from fake_nvml.recorded import recorded_h200
from fake_nvml.scenario import FakeGpu, Scenario
from gpu_looks import Program, held
from nvml_running import NvmlNode, nvml_node
from plugin_values import pod

_MIB: Final = 1 << 20
UIDS: Final = tuple(f"{number}1111111-1111-4111-8111-111111111111" for number in range(1, 5))
ENGINES: Final = tuple(Program(100 + number, 34 * 1024, pod_uid=uid) for number, uid in enumerate(UIDS))
NO_MPS: Final = ("--no-enforce-compute", "--no-enforce-memory")
"""No supervisor runs beside these tests, and what they are about does not need one."""


def gpu_with(*programs: Program, in_use_mib: int | None = None) -> Scenario:
    """Return the recorded H200 with programs of which the driver tells, and that much memory in use."""
    total, reserved, _ = recorded_h200().memory_bytes or (0, 0, 0)
    used = sum(one.memory_mib or 0 for one in programs) if in_use_mib is None else in_use_mib
    processes = tuple((one.pid, (one.memory_mib or 0) * _MIB, int(one.in_mps)) for one in programs)
    gpu: FakeGpu = replace(recorded_h200(), memory_bytes=(total, reserved, used * _MIB), processes=processes)
    return Scenario(gpus=(gpu,))


async def four_engines(node: NvmlNode) -> list[Admitted]:
    """Let four pods have a quarter each and fill it, and return their containers once the plugin saw them."""
    await node.until_groups(128)
    admitted = [
        (await node.kubelet.admit(pod(f"vllm-{number}"), [Ask("main", 32)]))[0] for number in range(len(ENGINES))
    ]
    node.records(*(held(uid, one.ids) for uid, one in zip(UIDS, admitted, strict=True)))
    node.runs(*ENGINES)
    node.become(gpu_with(*ENGINES))
    for one in admitted:
        await node.kubelet.start_container(one)
    return admitted


@pytest.mark.parametrize("is_named", [True, False], ids=["the driver still names it", "the driver forgot it"])
async def test_an_engine_starts_anew_once_the_memory_of_the_one_before_is_back(
    nvml_library: Path, *, is_named: bool
) -> None:
    """34 GiB of a killed process come back late. The start waits with a sentence, and goes on by itself."""
    async with nvml_node(nvml_library, gpu_with(), *NO_MPS) as node:
        first, *_ = await four_engines(node)
        killed, *others = ENGINES
        node.runs(killed.ended())
        full = sum(one.memory_mib or 0 for one in ENGINES)
        node.become(gpu_with(*(ENGINES if is_named else others), in_use_mib=full))
        for _ in range(2):
            with pytest.raises(grpc.aio.AioRpcError) as waits:
                await node.kubelet.start_container(first)
            assert waits.value.details() == (
                f"GPU 0 ({recorded_h200().uuid}) still holds 34816 MiB of an ended process"
            )
        node.become(gpu_with(*others))
        await node.kubelet.start_container(first)
        assert set(node.kubelet.devices.values()) == {"Healthy"}


async def test_a_gpu_whose_memory_never_comes_back_is_suspect(nvml_library: Path) -> None:
    """After the limit nothing new is sent there; whoever holds groups of it waits, and none of its pods has failed."""
    async with nvml_node(nvml_library, gpu_with(), *NO_MPS, "--late-memory-seconds=1") as node:
        first, *_ = await four_engines(node)
        node.runs(ENGINES[0].ended())
        await node.until(lambda told: told.gpus()[0]["health"] == "Suspect")
        assert "it still holds 34816 MiB of an ended process" in node.gpus()[0]["healthReason"]
        with pytest.raises(grpc.aio.AioRpcError, match="is suspect"):
            await node.kubelet.start_container(first)


async def test_everything_that_is_known_of_a_gpu_is_published(nvml_library: Path) -> None:
    """The recorded H200, as its node's CTANode has it: every fact, its health, its holders, and who else is on it."""
    async with nvml_node(nvml_library, gpu_with()) as node:
        await node.until_groups(128)
        (admitted,) = await node.kubelet.admit(pod("vllm-0"), [Ask("main", 32)])
        node.records(held(UIDS[0], admitted.ids))
        await node.until(lambda told: bool(told.gpus()[0]["allocations"]) and "foreignMemoryMiB" in told.gpus()[0])
        told, status = node.gpus()[0], node.status()
    link = {"width": 16, "widthMax": 16, "generation": 5, "generationMax": 5}
    held_there = {"namespace": "team-a", "pod": "vllm-0", "container": "main", "groups": 32, "memoryMiB": 35532}
    assert told == {
        "uuid": recorded_h200().uuid,
        "index": 0,
        "minor": recorded_h200().minor,
        "product": "NVIDIA H200",
        "computeCapability": "9.0",
        "smCount": 132,
        "capacity": 128,
        "minimum": 8,
        "step": 8,
        "memoryMiB": 143155,
        "driverReservedMiB": 615,
        "reserveMiB": 1024,
        "pciBusId": recorded_h200().pci.lower().removeprefix("0000"),
        "link": link,
        "copyEngines": 8,
        "migMode": "Disabled",
        "computeMode": "Default",
        "persistenceMode": bool(recorded_h200().persistence),
        "foreignMemoryMiB": 0,
        "health": "Healthy",
        "free": 96,
        "largestFit": 96,
        "allocations": [held_there],
    }
    assert (status["driverVersion"], status["cudaVersion"], status["simulated"]) == ("580.159.04", "13.0", False)
    assert status["enforcement"] == {
        "backend": "percentage",
        "mode": "cooperative",
        "compute": True,
        "memory": True,
    }
    assert {one["type"] for one in status["conditions"]} == {
        "Registered",
        "GPUsHealthy",
        "MPSReady",
        "ClientsLimited",
        "Compatible",
        "HoldersKnown",
    }


async def test_users_of_a_gpu_are_told_apart(nvml_library: Path) -> None:
    """A tenant outside MPS is named with its pod, a program of nobody's by its name, each with what it uses."""
    async with nvml_node(nvml_library, gpu_with(), "--mps-socket=/nonexistent/supervisor.sock") as node:
        await node.until_groups(128)
        (admitted,) = await node.kubelet.admit(pod("vllm-0"), [Ask("main", 32)])
        node.records(held(UIDS[0], admitted.ids))
        astray, stranger = Program(100, 60_000, pod_uid=UIDS[0]), Program(200, 600, name="Xorg")
        node.runs(astray, stranger)
        node.become(gpu_with(astray, stranger))
        await node.until(lambda told: told.condition("ClientsLimited")[1] == "UnlimitedProcess")
        assert "process 100 (python3) of pod team-a/vllm-0" in node.condition("ClientsLimited")[2]
        assert node.gpus()[0]["foreignMemoryMiB"] == 640
        assert "Xorg (pid 200)" in node.gpus()[0]["notice"]
