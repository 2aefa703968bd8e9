"""``cta-group-plugin doctor`` as a process, over a fake driver library, a fake kubelet and simulated MPS daemons."""

import json
from dataclasses import replace

import pytest

from cta_group_core.compatibility.host_findings import TOOLKIT_MPS_FOLDER
from cta_group_plugin.mps.supervisor import MpsSupervisor
from cta_group_plugin.ports import MpsDemand
from examined_node import ExaminedNode
from fake_nvml.scenario import DRIVER_NOT_LOADED, GPU_IS_LOST
from gpu_looks import Program, write_process


@pytest.mark.usefixtures("supervisor")
async def test_a_node_in_order(examined: ExaminedNode) -> None:
    """Nothing is found, in words and as facts; the exit status is 0."""
    assert await examined.runs() == (0, "Nothing is wrong on node-a.\n", "")
    status, output, _ = await examined.runs("-o", "json")
    assert (status, json.loads(output)) == (0, {"node": "node-a", "findings": []})


@pytest.mark.usefixtures("supervisor")
@pytest.mark.parametrize(
    ("on_host", "severity", "words"),
    [
        ({}, "info", "neither a driver nor an NVIDIA GPU is here"),
        ({"proc/driver/nvidia/version": "NVRM"}, "error", "it is loaded, and cannot be used here"),
        (
            {
                "sys/bus/pci/devices/0000:1b:00.0/vendor": "0x10de\n",
                "sys/bus/pci/devices/0000:1b:00.0/class": "0x030200\n",
                "sys/bus/pci/devices/0000:1c:00.0/vendor": "0x8086\n",
                "sys/bus/pci/devices/0000:1c:00.0/class": "0x030000\n",
            },
            "error",
            "1 NVIDIA GPUs are on the PCI bus and no driver is loaded",
        ),
    ],
)
async def test_no_driver_here(examined: ExaminedNode, on_host: dict[str, str], severity: str, words: str) -> None:
    """A node without a GPU, a driver that the container misses, and a GPU without a driver are three things."""
    examined.has_driver = False
    for path, text in on_host.items():
        examined.put(path, text)
    told = await examined.only()
    assert (told["severity"], told["subject"]) == (severity, "driver")
    assert words in told["sentence"]


@pytest.mark.usefixtures("supervisor")
async def test_a_driver_that_was_unloaded(examined: ExaminedNode) -> None:
    """The library is there and its driver is not."""
    examined.scenario = examined.scenario.with_failure("nvmlInitWithFlags", DRIVER_NOT_LOADED)
    assert (await examined.only())["subject"] == "driver"


@pytest.mark.usefixtures("supervisor")
async def test_a_gpu_that_does_not_answer(examined: ExaminedNode) -> None:
    """A lost GPU is named with what brings it back."""
    examined.scenario = examined.scenario.with_failure("nvmlDeviceGetHandleByIndex_v2", GPU_IS_LOST, 0)
    found = await examined.findings()
    assert any("it does not answer" in one["sentence"] and "reset" in one["remedy"] for one in found)


@pytest.mark.usefixtures("supervisor")
async def test_an_old_driver(examined: ExaminedNode) -> None:
    """Driver and CUDA are compared with what limiting a slice needs."""
    examined.scenario = replace(examined.scenario, driver="470.57.02", cuda=11040)
    sentences = str([one["sentence"] for one in await examined.findings()])
    assert "R470 does not tell" in sentences
    assert "needs CUDA 11.5" in sentences


@pytest.mark.usefixtures("supervisor")
async def test_more_clients_than_this_driver_takes(examined: ExaminedNode) -> None:
    """The plugin's own setting is compared too."""
    assert "takes 48 clients with CUDA 13.0" in (await examined.only("--max-clients=60"))["sentence"]


@pytest.mark.usefixtures("supervisor")
@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"link": (4, 16, 5, 5)}, "4 of 16 lanes"),
        ({"persistence": 0}, "persistence mode is off"),
        ({"compute_mode": 2}, "no program can use it"),
        ({"mig": (True, True)}, "MIG is on"),
        ({"mig": (True, False)}, "MIG changes to Disabled"),
    ],
)
async def test_facts_of_a_gpu(examined: ExaminedNode, facts: dict[str, object], words: str) -> None:
    """Link, persistence, compute mode and MIG, as the driver tells them."""
    examined.change(**facts)
    assert any(words in one["sentence"] for one in await examined.findings())


@pytest.mark.usefixtures("supervisor")
async def test_a_process_that_is_no_tenant(examined: ExaminedNode) -> None:
    """It is named with its memory; the MPS server and its clients are no strangers."""
    write_process(examined.host / "proc", Program(4711, name="firefox"))
    write_process(examined.host / "proc", Program(4712, name="nvidia-cuda-mps"))
    examined.change(processes=((4711, 3000 << 20, False), (4712, 60 << 20, False)))
    told = await examined.only()
    assert "use 3000 MiB of its memory: firefox (pid 4711, 3000 MiB)" in told["sentence"]


async def test_a_shared_gpu_in_the_wrong_compute_mode(examined: ExaminedNode, supervisor: MpsSupervisor) -> None:
    """A client that misses its daemon would run without limits; where modes are untouched on purpose it is meant."""
    gpu = examined.share(32)
    examined.change(compute_mode=0)
    await supervisor.sync([MpsDemand(gpu, 25, 35532)])
    assert "shared in compute mode Default" in (await examined.only())["sentence"]
    assert await examined.findings("--compute-mode=untouched") == []


@pytest.mark.usefixtures("supervisor")
async def test_the_container_toolkit_s_own_mps_mount(examined: ExaminedNode) -> None:
    """The folder on the host is told, because every GPU container gets it."""
    (examined.host / "tmp" / "nvidia-mps").mkdir(parents=True)
    told = await examined.only()
    assert told["subject"] == TOOLKIT_MPS_FOLDER


@pytest.mark.usefixtures("supervisor")
async def test_cdi_without_the_toolkit_s_specification(examined: ExaminedNode) -> None:
    """Where slices are CDI devices, somebody must describe the GPUs; JSON and YAML are both read."""
    flags = ("--device-list=cdi", "--cdi-dir=/etc/cdi")
    assert await examined.findings(*flags) == [], "what cannot be seen is no finding"
    for folder in ("etc/cdi", "var/run/cdi"):
        (examined.host / folder).mkdir(parents=True)
    assert "no specification describes devices of kind nvidia.com/gpu" in (await examined.only(*flags))["sentence"]
    examined.put("etc/cdi/nvidia.yaml", "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: []\n")
    assert await examined.findings(*flags) == []
    assert "kind example.com/gpu" in (await examined.only(*flags, "--cdi-gpu-kind=example.com/gpu"))["sentence"]
    examined.put(
        "var/run/cdi/other.json", json.dumps({"cdiVersion": "0.5.0", "kind": "example.com/gpu", "devices": []})
    )
    assert await examined.findings(*flags, "--cdi-gpu-kind=example.com/gpu") == []


async def test_bad_input(examined: ExaminedNode) -> None:
    """A wrong setting is told in a sentence and ends with 2."""
    status, _, errors = await examined.runs("--max-clients=1000")
    assert status == 2
    assert "must be a whole number from 0 to 60" in errors
