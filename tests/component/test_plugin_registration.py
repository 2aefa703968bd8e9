"""How the plugin makes itself known to kubelet, again and again."""

import asyncio
import resource
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cluster_harness.waiting import PATIENCE_SECONDS
from conditions import until
from cta_group_plugin.app import serve
from cta_group_plugin.errors import DriverGone
from cta_group_plugin.gpu_source import Survey
from cta_group_plugin.ports import GpuEvent, GpuEventKind
from cta_group_plugin.registrar import pause_seconds
from cta_group_plugin.testing import Ask, FakeGpuSource, FakeKubelet
from plugin_running import FakeNode, plugin_on, plugin_process, registered_plugin, short_folder
from plugin_values import inventory, node_of, pod


@pytest.fixture
async def node() -> AsyncIterator[FakeNode]:
    """Return a node with eight H100s."""
    with short_folder() as root:
        yield FakeNode.under(root)


class CountingDriver(FakeGpuSource):
    """A driver that counts how often it was asked for its GPUs."""

    surveys = 0

    def survey(self) -> Survey:
        """Count and answer."""
        self.surveys += 1
        return super().survey()


def has_all_devices(kubelet: FakeKubelet) -> bool:
    """Tell whether kubelet has 1024 healthy devices."""
    return list(kubelet.devices.values()) == ["Healthy"] * 1024


def names(kubelet: FakeKubelet) -> list[str]:
    """Return the socket names of all registrations."""
    return [request.endpoint for request in kubelet.registered]


def own_sockets(node: FakeNode) -> list[Path]:
    """Return the sockets in kubelet's folder that are not kubelet's."""
    return [path for path in node.settings.device_plugin_dir.iterdir() if path.name != "kubelet.sock"]


async def test_plugin_that_starts_first_waits_for_kubelet(node: FakeNode) -> None:
    """The order of starts does not matter."""
    async with plugin_on(node), node.kubelet() as kubelet:
        await kubelet.until(has_all_devices)


async def test_registered_again_with_each_new_kubelet(node: FakeNode) -> None:
    """Once for each kubelet, under another name. How soon is measured by ``make bench``: pods are lost after 0.9 s."""
    async with registered_plugin(node) as kubelet:
        for _ in range(5):
            await kubelet.stop()
            await kubelet.start()
            await kubelet.until(has_all_devices)
        assert len(kubelet.registered) == 6
        assert len(set(names(kubelet))) == 6


async def test_registered_again_when_its_socket_is_removed(node: FakeNode) -> None:
    """A folder that somebody cleans is repaired under a new name."""
    async with registered_plugin(node) as kubelet:
        (own,) = own_sockets(node)
        own.unlink()
        await kubelet.until(lambda kubelet: len(kubelet.registered) == 2 and has_all_devices(kubelet))
        assert len(set(names(kubelet))) == 2
        assert [path.name for path in own_sockets(node)] == names(kubelet)[-1:]


async def test_registered_again_when_kubelet_ends_the_stream(node: FakeNode) -> None:
    """A kubelet that mixed two plugins up and dropped the wrong one gets this one again."""
    async with registered_plugin(node) as kubelet:
        assert kubelet.endpoint
        await kubelet.endpoint.stop_listening()
        await kubelet.until(lambda kubelet: len(kubelet.registered) == 2 and has_all_devices(kubelet))
        assert len(set(names(kubelet))) == 2


async def test_registers_once_for_each_kubelet(node: FakeNode) -> None:
    """There is no second registration before kubelet comes anew, and each has a socket of its own."""
    async with registered_plugin(node) as kubelet:
        assert [path.name for path in own_sockets(node)] == names(kubelet)
        await kubelet.admit(pod("a"), [Ask("main", 8)])
        await kubelet.restart()
        await kubelet.until(lambda kubelet: len(kubelet.registered) > 1 and has_all_devices(kubelet))
        assert len(kubelet.registered) == 2
        assert [path.name for path in own_sockets(node)] == names(kubelet)[-1:]


async def test_pods_live_through_a_restart_of_kubelet(node: FakeNode) -> None:
    """What a kubelet remembers is not handed out again by the plugin that it finds anew."""
    async with registered_plugin(node) as kubelet:
        (before,) = await kubelet.admit(pod("a"), [Ask("main", 96)])
        await kubelet.restart()
        await kubelet.until(has_all_devices)
        (after,) = await kubelet.admit(pod("b"), [Ask("main", 96)])
        assert not set(before.ids) & set(after.ids)
        await kubelet.start_container(before)


async def test_nothing_is_registered_without_a_gpu(node: FakeNode) -> None:
    """A node without GPUs has no resource at all, however often the driver is asked, until one appears."""
    node.gpus = driver = CountingDriver(inventory())
    async with node.kubelet() as kubelet, plugin_on(node):
        await until(lambda: driver.surveys > 3)
        assert kubelet.registered == []
        driver.shown = node_of(8)
        await kubelet.until(has_all_devices)


async def test_failed_registration_is_tried_again_under_another_name(node: FakeNode) -> None:
    """A socket that nobody serves is no kubelet; the one that takes its place is registered with at once."""
    dead = FakeKubelet(node.settings.device_plugin_dir)
    await dead.start()
    left_behind = node.settings.device_plugin_dir / "kubelet.sock"
    left_behind.rename(left_behind.with_name("kubelet.dead"))
    await dead.stop()
    left_behind.with_name("kubelet.dead").rename(left_behind)
    async with plugin_on(node, publish=True):
        await until(lambda: "nobody serves" in str(node.api.applied[-1:]))
        async with node.kubelet() as kubelet:
            await kubelet.until(has_all_devices)
            assert len(kubelet.registered) == 1


async def test_place_where_no_socket_can_be_made_is_tried_again(node: FakeNode) -> None:
    """As on a full disk, or without a descriptor left: the process goes on, says where, and takes the next name."""
    async with registered_plugin(node) as kubelet:
        (own,) = own_sockets(node)
        taken = [own.with_name(own.name.replace("-1.sock", f"-{number}.sock")) for number in (2, 3)]
        for path in taken:
            path.mkdir()
        own.unlink()
        await kubelet.until(lambda kubelet: len(kubelet.registered) == 2 and has_all_devices(kubelet))
        assert names(kubelet)[-1].endswith("-4.sock")


async def test_driver_that_is_gone_ends_the_process(node: FakeNode) -> None:
    """Only a fresh process can load the driver again: this one withdraws its devices and fails."""
    async with node.kubelet() as kubelet:
        running = asyncio.create_task(serve(node.settings, node.edges(), asyncio.Event()))
        await kubelet.until(has_all_devices)
        node.gpus.shown = DriverGone("the driver was unloaded")
        node.gpus.push(GpuEvent(GpuEventKind.LOST, None))
        assert await asyncio.wait_for(running, PATIENCE_SECONDS) == 1
        await kubelet.until(lambda kubelet: "Healthy" not in kubelet.devices.values())


async def test_killed_plugin_is_replaced_by_the_next() -> None:
    """After SIGKILL a new process registers under another name, with the same devices and the same pods."""
    with short_folder() as root:
        node = FakeNode.under(root, node_of(1))
        async with FakeKubelet(root / "plugins", pod_resources_socket=root / "pods.sock") as kubelet:
            async with plugin_process(root, "--count=2") as first:
                await kubelet.until(lambda kubelet: len(kubelet.devices) == 256)
                devices = sorted(kubelet.devices)
                (held,) = await kubelet.admit(pod("a"), [Ask("main", 96)])
                first.send_signal(signal.SIGKILL)
                await first.wait()
            assert len(own_sockets(node)) == 1
            async with plugin_process(root, "--count=2") as second:
                await kubelet.until(
                    lambda kubelet: len(kubelet.registered) == 2 and set(kubelet.devices.values()) == {"Healthy"}
                )
                assert sorted(kubelet.devices) == devices
                assert set(kubelet.devices.values()) == {"Healthy"}
                (other,) = await kubelet.admit(pod("b"), [Ask("main", 64)])
                assert not set(held.ids) & set(other.ids)
                await kubelet.start_container(held)
                second.send_signal(signal.SIGTERM)
                assert await second.wait() == 0
            assert len(set(names(kubelet))) == 2


def highest_descriptor(pid: int) -> int:
    """Return the highest file descriptor that a process has."""
    return max(int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir())


def ticks_used(pid: int) -> int:
    """Return the ticks of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


async def test_process_without_a_descriptor_left_is_back_with_the_next_one() -> None:
    """A kubelet that starts meanwhile does not end it, and is registered with once there are descriptors again."""
    with short_folder() as root:
        (root / "plugins").mkdir()
        async with FakeKubelet(root / "plugins") as kubelet, plugin_process(root, "--count=1") as plugin:
            await kubelet.until(lambda kubelet: bool(kubelet.devices))
            soft, hard = resource.prlimit(plugin.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(plugin.pid, resource.RLIMIT_NOFILE, (highest_descriptor(plugin.pid), hard))
            await kubelet.stop()
            await kubelet.start()
            before = ticks_used(plugin.pid)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while ticks_used(plugin.pid) == before:  # noqa: ASYNC110 - it has looked at the new kubelet by then
                    await asyncio.sleep(0.01)
            resource.prlimit(plugin.pid, resource.RLIMIT_NOFILE, (soft, hard))
            await kubelet.until(lambda kubelet: bool(kubelet.devices))
            assert plugin.returncode is None


def test_pauses_grow_to_ten_seconds_with_chance_in_them() -> None:
    """The first pause is a blink, the longest ten seconds, and no two plugins pause alike."""
    longest = [pause_seconds(failures, 1.0) for failures in range(1, 20)]
    assert longest[0] == pytest.approx(0.1)
    assert longest == sorted(longest)
    assert longest[-1] == 10.0
    assert pause_seconds(19, 0.0) == 5.0
