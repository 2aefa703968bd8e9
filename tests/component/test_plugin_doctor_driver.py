"""``cta-group-plugin doctor`` about a driver that is in trouble, over a fake driver in the test's own process."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cta_group_core.compatibility.findings import Finding
from cta_group_plugin.doctor.findings import findings_of
from cta_group_plugin.doctor.gather import DoctorSettings, examine
from cta_group_plugin.doctor.processes import UNKNOWN, foreign_processes
from cta_group_plugin.doctor.show import published
from cta_group_plugin.errors import DriverError, DriverGone, GpuLost
from cta_group_plugin.gpu_source import Vitals
from cta_group_plugin.ports import BrokenGpu, GpuProcess, Inventory, MpsState
from plugin_running import FakeNode, short_folder
from plugin_values import gpu, inventory, uuid_of

_READY = MpsState(ready=True, reason="", client_pids=(7,))


@pytest.fixture
def node() -> Iterator[FakeNode]:
    """Give the test a node with one H100 and nothing else: no kubelet, no supervisor."""
    with short_folder() as root:
        yield FakeNode.under(root, inventory(gpu(0)))


async def about_driver(node: FakeNode, *, driver_seconds: float = 10) -> list[Finding]:
    """Return what is found about the driver and the GPUs."""
    settings = DoctorSettings(node.settings, host_root=node.root / "host", driver_seconds=driver_seconds)
    found = await examine(settings, node.edges())
    findings = findings_of(found, published(found, settings), settings)
    return [one for one in findings if one.subject == "driver" or one.subject.startswith("GPU ")]


async def test_a_driver_in_order(node: FakeNode) -> None:
    """Nothing is found, and the driver was let go."""
    assert await about_driver(node) == []
    assert node.gpus.is_closed


async def test_a_driver_that_hangs_is_not_waited_for(node: FakeNode) -> None:
    """A question that is never answered costs its time limit and becomes a finding."""
    stuck = node.gpus.stuck[uuid_of(0)] = threading.Event()
    try:
        (told,) = await about_driver(node, driver_seconds=0.2)
    finally:
        stuck.set()
    assert told.sentence == "the driver has not answered within 0.2 s"


@pytest.mark.parametrize("problem", [DriverError("NVML could not initialise: unknown"), DriverGone("driver changed")])
async def test_a_driver_that_fails(node: FakeNode, problem: DriverError) -> None:
    """Its own words are told."""
    node.gpus.shown = problem
    (told,) = await about_driver(node)
    assert told.sentence == str(problem)


async def test_one_gpu_that_fails_leaves_the_others_to_be_examined(node: FakeNode) -> None:
    """A GPU that is listed and lost, and one that fails at its health, are each told once; the third is in order."""
    lost = BrokenGpu(index=1, uuid=uuid_of(1), reason="GPU is lost", is_lost=True)
    node.gpus.shown = Inventory("580.95.05", "13.0", (gpu(0), gpu(2)), (lost,))
    node.gpus.told[uuid_of(2)] = GpuLost("NVML could not ask: GPU is lost")
    found = await about_driver(node)
    assert [one.subject for one in found] == [f"GPU {index} ({uuid_of(index)})" for index in (1, 2)]
    assert all("it does not answer" in one.sentence for one in found)


@pytest.mark.parametrize(
    ("vitals", "words"),
    [
        (Vitals(recovery_action=1), "the driver asks for a reset of this GPU"),
        (Vitals(recovery_action=99), "recovery action 99"),
        (Vitals(remap_failed=True), "could not be replaced"),
    ],
)
async def test_what_the_driver_asks_for(node: FakeNode, vitals: Vitals, words: str) -> None:
    """A recovery action and a broken row of memory are findings; nothing asked is none."""
    node.gpus.told[uuid_of(0)] = vitals
    (told,) = await about_driver(node)
    assert words in told.sentence
    node.gpus.told[uuid_of(0)] = Vitals(recovery_action=0, remap_failed=False)
    assert await about_driver(node) == []


def test_processes_of_another_namespace_are_no_strangers_when_mps_explains_them(tmp_path: Path) -> None:
    """Clients are known by the driver or by their daemon; one that cannot be seen beside them is the server."""
    processes = (
        GpuProcess(7, 4000),
        GpuProcess(0, 5000, is_mps_client=True),
        GpuProcess(11, 60),
        GpuProcess(12, 900),
    )
    (left,) = foreign_processes({uuid_of(0): processes}, {uuid_of(0): _READY}, tmp_path)[uuid_of(0)]
    assert (left.pid, left.name, left.memory_mib) == (12, UNKNOWN, 900)
    alone = foreign_processes({uuid_of(0): processes[2:]}, {}, tmp_path)[uuid_of(0)]
    assert [one.pid for one in alone] == [11, 12]
