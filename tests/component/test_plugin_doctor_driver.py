"""``cta-group-plugin doctor`` about a driver that is in trouble, over a fake driver in the test's own process."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.ids import UUID_TEXTS
from cta_group_plugin.doctor.findings import findings_of
from cta_group_plugin.doctor.gather import DoctorSettings, examine
from cta_group_plugin.doctor.processes import UNKNOWN, tenants_of, users_of
from cta_group_plugin.doctor.show import published
from cta_group_plugin.errors import DriverError, DriverGone, GpuLost
from cta_group_plugin.gpu_source import GpuUse, Vitals
from cta_group_plugin.ports import BrokenGpu, GpuProcess, Inventory, MpsState
from gpu_looks import Program, held, write_process
from plugin_running import FakeNode, short_folder
from plugin_values import gpu, groups, inventory, uuid_of

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
    assert told.sentence == "the driver does not answer in 0.2 s"


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
    (left,) = users_of({uuid_of(0): processes}, {uuid_of(0): _READY}, tmp_path)[uuid_of(0)].foreign
    assert (left.pid, left.name, left.memory_mib) == (12, UNKNOWN, 900)
    alone = users_of({uuid_of(0): processes[2:]}, {}, tmp_path)[uuid_of(0)].foreign
    assert [one.pid for one in alone] == [11, 12]


def test_tenants_are_told_from_strangers_by_their_pods(tmp_path: Path) -> None:
    """A client and a stranger are what they are; a process of a tenant's pod outside MPS has no limits."""
    uid = "11111111-1111-4111-8111-111111111111"
    programs = [Program(7, pod_uid=uid), Program(8, 900, pod_uid=uid), Program(9, 60, name="nvidia-cuda-mps")]
    programs.append(Program(12, 600, name="Xorg"))
    for each in programs:
        write_process(tmp_path / "proc", each)
    processes = tuple(GpuProcess(one.pid, one.memory_mib) for one in programs)
    tenants = tenants_of([held(uid, groups(0, range(32)))], UUID_TEXTS.parse)
    users = users_of({uuid_of(0): processes}, {uuid_of(0): _READY}, tmp_path, tenants)[uuid_of(0)]
    assert [(one.pid, one.name, one.memory_mib) for one in users.foreign] == [(12, "Xorg", 600)]
    assert [(one.pid, one.memory_mib) for one in users.unlimited] == [(8, 900)]
    without = users_of({uuid_of(0): processes}, {uuid_of(0): _READY}, tmp_path)[uuid_of(0)]
    assert ([one.pid for one in without.foreign], without.unlimited) == ([8, 12], ())


async def test_a_tenant_past_its_limits_is_an_error(node: FakeNode) -> None:
    """With its name and what to do; where limits are switched off it is none."""
    uid = "11111111-1111-4111-8111-111111111111"
    write_process(node.root / "host/proc", Program(8, 900, pod_uid=uid))
    node.gpus.used[uuid_of(0)] = GpuUse(processes=(GpuProcess(8, 900),))
    node.read_record = lambda: (held(uid, groups(0, range(32))),)
    (told,) = await about_driver(node)
    assert told.severity is Severity.ERROR
    assert "python3 (pid 8, 900 MiB)" in told.sentence
    node.read_record = None
    assert "no tenants" in (await about_driver(node))[0].sentence
