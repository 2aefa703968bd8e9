"""The running plugin with CDI devices: its specifications are there whenever a container may need them."""

import asyncio
import json
import os
import shutil
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import grpc.aio
import pytest

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_plugin.adapters.cdi_files import CdiFiles
from cta_group_plugin.answers import CdiRules
from cta_group_plugin.assembly import rules_of
from cta_group_plugin.errors import CdiUnavailable
from cta_group_plugin.inventory import ServedGpu, offer_of
from cta_group_plugin.ports import GpuEvent, GpuEventKind
from cta_group_plugin.settings import CdiSettings, DeviceList, SourceKind
from cta_group_plugin.specifications import SpecificationKeeper
from cta_group_plugin.state import NodeState
from cta_group_plugin.testing import Ask
from plugin_running import FakeNode, plugin_on, registered_plugin, short_folder
from plugin_values import RESERVE_MIB, RULES, inventory, node_of, pod, uuid_of


@pytest.fixture
async def node() -> AsyncIterator[FakeNode]:
    """Return a node with two H100s."""
    with short_folder() as root:
        yield FakeNode.under(root, node_of(2))


def cdi(node: FakeNode) -> dict[str, object]:
    """Return the settings for CDI devices in a folder that nobody made yet."""
    return {"device_list": DeviceList.CDI, "cdi": CdiSettings(folder=node.root / "cdi")}


def described(folder: Path) -> set[str]:
    """Return the qualified name of every device in the folder; each file must be whole."""
    read = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return {f"{one['kind']}={device['name']}" for one in read for device in one["devices"]}


async def test_specifications_are_there_when_kubelet_is_told(node: FakeNode) -> None:
    """At the moment of the first registration every device is described, and nothing unfinished is left."""
    async with node.kubelet() as kubelet, plugin_on(node, **cdi(node)):
        await kubelet.until(lambda kubelet: bool(kubelet.registered))
        devices = described(node.root / "cdi")
        await kubelet.until(lambda kubelet: bool(kubelet.devices))
        (container,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
    assert len(devices) == 2 * 16
    (ours, _) = (device.name for device in container.answer.cdi_devices)
    assert ours in devices
    assert not container.answer.mounts
    files = sorted(path.name for path in (node.root / "cdi").iterdir())
    assert files == [f"ctagroup.dev-slice_{uuid_of(index)}.json" for index in (0, 1)]


async def test_emptied_folder_is_filled_before_a_container_starts(node: FakeNode) -> None:
    """A reboot empties /var/run, and somebody may clean it: the start of a container finds its device described."""
    async with registered_plugin(node, **cdi(node)) as kubelet:
        (container,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
        shutil.rmtree(node.root / "cdi")
        await kubelet.start_container(container)
        assert container.answer.cdi_devices[0].name in described(node.root / "cdi")


async def test_damaged_specification_is_put_right(node: FakeNode) -> None:
    """What somebody else wrote into our file never reaches a container."""
    async with registered_plugin(node, **cdi(node)) as kubelet:
        (container,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
        path = node.root / "cdi" / f"ctagroup.dev-slice_{uuid_of(0)}.json"
        right = path.read_text()
        path.write_bytes(b"\xff{")
        await kubelet.start_container(container)
        assert path.read_text() == right


async def test_folder_that_cannot_be_written_delays_starts_only(node: FakeNode) -> None:
    """A wrong folder: kubelet is told all the same, a start waits with the path, and passes once it is mended."""
    (node.root / "cdi").write_text("a file, where a folder should be")
    async with registered_plugin(node, **cdi(node)) as kubelet:
        (container,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
        with pytest.raises(grpc.aio.AioRpcError) as waiting:
            await kubelet.start_container(container)
        assert waiting.value.code() is grpc.StatusCode.UNAVAILABLE
        assert str(node.root / "cdi") in str(waiting.value.details())
        (node.root / "cdi").unlink()
        await kubelet.start_container(container)
        assert container.answer.cdi_devices[0].name in described(node.root / "cdi")


async def test_specification_of_a_gpu_that_vanished_stays(node: FakeNode) -> None:
    """Pods recorded its devices; the file of the other GPU is not touched either."""
    async with registered_plugin(node, **cdi(node)) as kubelet:
        before = described(node.root / "cdi")
        node.gpus.shown = inventory(*node_of(2).gpus[:1])
        node.gpus.push(GpuEvent(GpuEventKind.LOST, uuid_of(1), detail="fell off the bus"))
        await kubelet.until(lambda kubelet: "Unhealthy" in kubelet.devices.values())
        assert described(node.root / "cdi") == before
    async with registered_plugin(node, **cdi(node)) as kubelet:
        assert len(kubelet.devices) == 128
        assert described(node.root / "cdi") == before


async def test_whole_gpu_waits_for_its_specification_too(node: FakeNode) -> None:
    """Without its device a container of a whole GPU would start without a GPU."""
    (node.root / "cdi").write_text("a file, where a folder should be")
    async with registered_plugin(node, **cdi(node)) as kubelet:
        (container,) = await kubelet.admit(pod("a"), [Ask("main", 128)])
        with pytest.raises(grpc.aio.AioRpcError, match="cannot be written"):
            await kubelet.start_container(container)


class HangingFolder:
    """A folder on a file system that does not answer until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def keep(self, specifications: Mapping[str, str]) -> None:
        """Wait."""
        del specifications
        self.let_go.wait(30)


async def test_file_system_that_hangs_is_a_reason_and_no_block() -> None:
    """A write that does not return becomes a sentence, is not started a second time, and heals when it returns."""
    state, folder = NodeState(waits_for_specifications=True), HangingFolder()
    offer = offer_of(node_of(1), reserve_mib=RESERVE_MIB)
    keeper = SpecificationKeeper(state, folder, RULES, CdiRules())
    try:
        with pytest.raises(CdiUnavailable, match="not written within 1 s"):
            await keeper.ensure(offer.served)
        with pytest.raises(CdiUnavailable, match="still hangs"):
            await keeper.ensure(offer.served)
    finally:
        folder.let_go.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await ensured(keeper, offer.served):  # noqa: ASYNC110 - it tells when asked
            await asyncio.sleep(0.01)


async def ensured(keeper: SpecificationKeeper, gpus: Sequence[ServedGpu]) -> bool:
    """Tell whether the specifications are there now."""
    try:
        await keeper.ensure(gpus)
    except CdiUnavailable:
        return False
    return True


def test_file_that_is_right_is_not_written_again(tmp_path: Path) -> None:
    """The runtime reads a folder again at each change, so there is none without need."""
    files = CdiFiles(tmp_path)
    files.keep({"a.json": "1"})
    before = (tmp_path / "a.json").stat()
    files.keep({"a.json": "1"})
    after = (tmp_path / "a.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert after.st_mode & 0o777 == 0o644


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    """A process that was killed while it wrote leaves one file behind; the next one removes it, not a live one's."""
    old, young = (tmp_path / f".ctagroup.dev-slice_{name}.unfinished" for name in ("old", "young"))
    for path in (old, young):
        path.write_text("half")
    os.utime(old, (0, 0))
    CdiFiles(tmp_path).keep({"a.json": "1"})
    assert not old.exists()
    assert young.exists()


def test_settings_reach_the_rules() -> None:
    """The kind is the setting's, and simulated GPUs never ask the runtime for a device that nobody describes."""
    with short_folder() as root:
        settings = replace(FakeNode.under(root).settings, device_list=DeviceList.CDI)
    assert rules_of(settings).cdi == CdiRules(gpu_kind="nvidia.com/gpu", is_simulated=False)
    assert rules_of(replace(settings, cdi=CdiSettings(gpu_kind=""))).cdi == CdiRules(gpu_kind="", is_simulated=False)
    assert rules_of(replace(settings, source=SourceKind.SIMULATED)).cdi == CdiRules(is_simulated=True)
