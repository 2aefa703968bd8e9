"""GPUs in trouble under the running plugin: what kubelet and the others of the node notice of it."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import grpc.aio
import pytest

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_core.ids import GroupId
from cta_group_plugin.app import serve
from cta_group_plugin.errors import DriverError, DriverGone
from cta_group_plugin.gpu_source import Vitals
from cta_group_plugin.ports import BrokenGpu, GpuEvent, GpuEventKind, Inventory
from cta_group_plugin.report import GpuReport
from cta_group_plugin.settings import HealthSettings
from cta_group_plugin.testing import Admitted, Ask, FakeKubelet
from plugin_running import FakeNode, plugin_on, registered_plugin, short_folder
from plugin_values import gpu, inventory, node_of, pod, uuid_of

FAST = HealthSettings(poll_seconds=0.05, answer_seconds=20, state_dir=None)
"""A driver that answers has its time: on a busy machine a thread may be long about it."""
IMPATIENT = replace(FAST, answer_seconds=1)


@pytest.fixture
async def node() -> AsyncIterator[FakeNode]:
    """Return a node with eight H100s."""
    with short_folder() as root:
        yield FakeNode.under(root)


@pytest.fixture
async def kubelet(node: FakeNode) -> AsyncIterator[FakeKubelet]:
    """Return a kubelet that knows the plugin, which asks its GPUs twenty times a second."""
    async with registered_plugin(node, health=FAST, publish=True) as kubelet:
        yield kubelet


@pytest.fixture
async def impatient(node: FakeNode) -> AsyncIterator[FakeKubelet]:
    """Return a kubelet that knows the plugin, which takes a driver that is silent for a second as one that hangs."""
    async with registered_plugin(node, health=IMPATIENT, publish=True) as kubelet:
        yield kubelet


def unhealthy(kubelet: FakeKubelet) -> Counter[int]:
    """Return how many groups of each GPU are unhealthy, by its index."""
    index = {uuid_of(number): number for number in range(8)}
    return Counter(index[GroupId.parse(text).gpu] for text, told in kubelet.devices.items() if told == "Unhealthy")


async def published(node: FakeNode, condition: Callable[[tuple[GpuReport, ...]], bool]) -> None:
    """Wait until the node's object tells something of its GPUs."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (node.api.applied and condition(node.api.applied[-1].gpus)):  # noqa: ASYNC110 - a fake tells nobody
            await asyncio.sleep(0.01)


async def test_one_of_eight_gpus_is_lost_and_back(kubelet: FakeKubelet, node: FakeNode) -> None:
    """While it is away all its groups are unhealthy, none of another, and pods run on the others.

    Back again it is healthy after its clean polls, with the ids of before; those that a pod has kept go to nobody else.
    """
    ids = set(kubelet.devices)
    kept = sorted(text for text in ids if text.startswith(uuid_of(7)))[:32]
    kubelet.hold(pod("kept"), "main", kept)
    lost = BrokenGpu(7, uuid_of(7), "GPU is lost", is_lost=True)
    node.gpus.shown = replace(inventory(*(gpu(index) for index in range(7))), broken=(lost,))
    node.gpus.push(GpuEvent(GpuEventKind.LOST, uuid_of(7), detail="fell off the bus"))
    await kubelet.until(lambda kubelet: bool(unhealthy(kubelet)))
    assert unhealthy(kubelet) == {7: 128}
    await kubelet.admit(pod("a"), [Ask("main", 7 * 128)])
    await published(node, lambda gpus: gpus[7].health == "Unhealthy" and gpus[7].largest_fit == 0)
    node.gpus.shown = node_of(8)
    node.gpus.push(GpuEvent(GpuEventKind.RECOVERED, uuid_of(7)))
    await published(node, lambda gpus: gpus[7].health == "Healthy")
    await kubelet.until(lambda kubelet: not unhealthy(kubelet))
    assert set(kubelet.devices) == ids
    (rest,) = await kubelet.admit(pod("b"), [Ask("main", 96)])
    assert {*rest.ids, *kept} == {text for text in ids if text.startswith(uuid_of(7))}


async def test_loss_that_no_event_tells_is_found_by_a_poll(kubelet: FakeKubelet, node: FakeNode) -> None:
    """A GPU that vanished from the driver's list keeps its ids, all unhealthy."""
    node.gpus.shown = inventory(*(gpu(index) for index in range(7)))
    await kubelet.until(lambda kubelet: unhealthy(kubelet) == {7: 128})
    assert len(kubelet.devices) == 1024


async def test_fatal_xid_lasts_while_the_gpu_answers(kubelet: FakeKubelet, node: FakeNode) -> None:
    """Polls alone do not heal it; the driver's own word that it asked for a reset and is content does."""
    node.gpus.told[uuid_of(0)] = Vitals(recovery_action=1)
    node.gpus.push(GpuEvent(GpuEventKind.XID, uuid_of(0), xid=48))
    await kubelet.until(lambda kubelet: unhealthy(kubelet) == {0: 128})
    asked = len(node.gpus.asked)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(node.gpus.asked) < asked + 5 * 24:  # noqa: ASYNC110 - a fake tells nobody
            await asyncio.sleep(0.01)
    assert unhealthy(kubelet) == {0: 128}
    node.gpus.told[uuid_of(0)] = Vitals(recovery_action=0)
    await published(node, lambda gpus: gpus[0].health == "Healthy")


async def test_storm_of_xids_hurts_one_gpu_and_floods_nobody(kubelet: FakeKubelet, node: FakeNode) -> None:
    """During 2000 XIDs that GPU is out, kubelet hears of it once, the others are allocated; the same holds after it."""
    endpoint = kubelet.endpoint
    assert endpoint
    for number in range(2000):
        node.gpus.push(GpuEvent(GpuEventKind.XID, uuid_of(3), xid=(13, 31, 48, 63)[number % 4]))
    await kubelet.until(lambda kubelet: unhealthy(kubelet) == {3: 128})
    (container,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
    await kubelet.start_container(container)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not node.gpus.is_quiet:  # noqa: ASYNC110 - a fake tells nobody
            await asyncio.sleep(0.01)
    assert unhealthy(kubelet) == {3: 128}
    assert endpoint.lists_received == 2


async def test_question_that_hangs_takes_its_gpu_only(impatient: FakeKubelet, node: FakeNode) -> None:
    """Meanwhile groups are given out at once and events of others arrive; once it answers it recovers.

    The GPU that hangs is taken out after two polls.
    """
    kubelet, stuck = impatient, threading.Event()
    node.gpus.stuck[uuid_of(2)] = stuck
    try:
        (container,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
        await kubelet.start_container(container)
        await kubelet.until(lambda kubelet: unhealthy(kubelet) == {2: 128})
        node.gpus.push(GpuEvent(GpuEventKind.XID, uuid_of(5), xid=79))
        await kubelet.until(lambda kubelet: unhealthy(kubelet) == {2: 128, 5: 128})
        await published(node, lambda gpus: "has not answered" in (gpus[2].health_reason or ""))
    finally:
        stuck.set()
    await published(node, lambda gpus: gpus[2].health == "Healthy")
    await kubelet.until(lambda kubelet: unhealthy(kubelet) == {5: 128})


async def test_gpu_of_which_calls_hang_is_left_alone(kubelet: FakeKubelet, node: FakeNode) -> None:
    """After XID 119 no question is asked about that GPU any more, about the others they are."""
    node.gpus.push(GpuEvent(GpuEventKind.XID, uuid_of(1), xid=119))
    await kubelet.until(lambda kubelet: unhealthy(kubelet) == {1: 128})
    # One poll may have been on its way.
    for _ in range(2):
        node.gpus.asked.clear()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while Counter(node.gpus.asked)[uuid_of(7)] < 6:  # noqa: ASYNC110 - a fake tells nobody
                await asyncio.sleep(0.01)
    assert uuid_of(1) not in node.gpus.asked
    assert len(kubelet.devices) == 1024


async def test_driver_that_fails_to_list_changes_nothing(kubelet: FakeKubelet, node: FakeNode) -> None:
    """What the driver said before stands; the node's condition says that it is not known any more."""
    node.gpus.shown = DriverError("Unknown Error")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not any(told.reason == "DriverDoesNotAnswer" for told in node.api.applied[-1].conditions):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert not unhealthy(kubelet)
    await kubelet.admit(pod("a"), [Ask("main", 32)])


async def test_changed_driver_withdraws_all_and_ends_the_process(node: FakeNode) -> None:
    """Before the process ends, kubelet and the node's object know that there is nothing to be had."""
    settings = replace(node.settings, health=FAST, publish=True)
    async with node.kubelet() as kubelet:
        running = asyncio.create_task(serve(settings, node.edges(), asyncio.Event()))
        await kubelet.until(lambda kubelet: len(kubelet.devices) == 1024)
        endpoint = kubelet.endpoint
        node.gpus.shown = DriverGone("the driver was changed")
        await kubelet.until(lambda kubelet: not kubelet.devices)
        assert endpoint is kubelet.endpoint
        await published(node, lambda gpus: not gpus)
        assert await running == 1
        assert node.api.applied[-1].allocatable == 0


async def test_mig_that_is_switched_on_withdraws_its_gpu_until_it_is_off(kubelet: FakeKubelet, node: FakeNode) -> None:
    """Within a poll, without a restart, and the ids of the others never change."""
    assert len(kubelet.devices) == 1024
    node.gpus.shown = with_mig(6)
    await kubelet.until(lambda kubelet: len(kubelet.devices) == 896)
    assert not [text for text in kubelet.devices if text.startswith(uuid_of(6))]
    await published(node, lambda gpus: "MIG" in (gpus[6].withheld or ""))
    node.gpus.shown = node_of(8)
    await kubelet.until(lambda kubelet: len(kubelet.devices) == 1024)
    assert set(kubelet.devices.values()) == {"Healthy"}
    assert len(kubelet.registered) == 1


def with_mig(index: int) -> Inventory:
    """Return the node with one GPU in MIG mode."""
    node = node_of(8)
    return replace(node, gpus=tuple(replace(each, mig_enabled=each.index == index) for each in node.gpus))


async def test_container_of_a_suspect_gpu_waits_and_then_starts(node: FakeNode) -> None:
    """A GPU whose driver asks for something holds its container back, with the reason, and lets it start later."""
    async with registered_plugin(node, health=FAST) as kubelet:
        (container,) = await kubelet.admit(pod("a"), [Ask("main", 128)])
        node.gpus.told[uuid_of(0)] = Vitals(recovery_action=3)
        await kubelet.until(lambda kubelet: unhealthy(kubelet) == {0: 128})
        with pytest.raises(grpc.aio.AioRpcError, match="is unhealthy: the driver asks that all traffic"):
            await kubelet.start_container(container)
        node.gpus.told[uuid_of(0)] = Vitals(recovery_action=0)
        await until_started(kubelet, container)


async def until_started(kubelet: FakeKubelet, container: Admitted) -> None:
    """Start a container again and again, as kubelet does, until it may."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await kubelet.start_container(container)
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.01)


async def test_fault_of_a_program_has_its_mps_daemon_asked_at_once(kubelet: FakeKubelet, node: FakeNode) -> None:
    """One client's fault may have ended all of them; nobody waits for the next period to know."""
    (container,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
    await kubelet.start_container(container)
    asked = len(node.mps.demanded)
    node.gpus.push(GpuEvent(GpuEventKind.XID, uuid_of(0), xid=31))
    async with asyncio.timeout(9):  # the period is ten seconds
        while len(node.mps.demanded) == asked:  # noqa: ASYNC110 - a fake tells nobody
            await asyncio.sleep(0.01)


async def test_plugin_ends_at_once_though_a_question_hangs(node: FakeNode) -> None:
    """Stopping waits for no thread that may never come back."""
    stuck = node.gpus.stuck[uuid_of(0)] = threading.Event()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS), node.kubelet(), plugin_on(node, health=FAST):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not node.gpus.asked:  # noqa: ASYNC110 - a fake tells nobody
                    await asyncio.sleep(0.01)
    finally:
        stuck.set()
