"""A thousand restarts of kubelet leave nothing behind in the plugin."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from background import in_background
from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_plugin.allocator import Allocator
from cta_group_plugin.ceilings import CeilingKeeper
from cta_group_plugin.charge import ChargeKeeper
from cta_group_plugin.metrics import Metrics
from cta_group_plugin.registrar import Registrar
from cta_group_plugin.service import DevicePluginService, Stream
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from cta_group_plugin.testing import FakeKubelet, FakeMpsControl
from plugin_running import short_folder
from plugin_values import RULES, node_of, offer

CYCLES = 1000
WARM_UP_CYCLES = 20
"""Pools of grpcio grow in the first few."""
MOST_THREADS_OF_GRPCIO = 64
"""Its pools come and go with the load."""


class CountedStreams:
    """Makes the service of each registration and remembers their streams."""

    def __init__(self, state: NodeState) -> None:
        self.made: list[Stream] = []
        self._state = state
        ceilings = CeilingKeeper(state, FakeMpsControl(), EnforcementSettings(), needs_account=False)
        self._allocator = Allocator(state, ceilings, RULES, Metrics("test"), lambda: None)

    def service(self, stream: Stream) -> DevicePluginService:
        """Return the service of one registration."""
        self.made.append(stream)
        return DevicePluginService(self._state, self._allocator, stream)

    @property
    def living(self) -> int:
        """How many streams kubelet has begun and nobody has ended."""
        return sum(stream.opened.is_set() and not stream.ended.is_set() for stream in self.made)


@asynccontextmanager
async def registering(folder: Path, state: NodeState, streams: CountedStreams) -> AsyncIterator[None]:
    """Run the registrar over a kubelet's folder; it looks more often than on a node, for the sake of the test."""
    charge = ChargeKeeper(state, folder, DEFAULT_RESOURCE_NAME)
    make = partial(Registrar, state, folder, DEFAULT_RESOURCE_NAME, streams.service, Metrics("test"), charge=charge)
    async with in_background(make(look_seconds=0.001).run):
        yield


def what_is_there(folder: Path, streams: CountedStreams) -> dict[str, int]:
    """Count everything that a registration may leave behind."""
    return {
        "file descriptors": entries(Path("/proc/self/fd")),
        "threads": threading.active_count(),
        "tasks": len(asyncio.all_tasks()),
        "streams": streams.living,
        "sockets": entries(folder),
    }


def entries(folder: Path) -> int:
    """Count what is in a folder."""
    return sum(1 for _ in folder.iterdir())


async def left_behind(folder: Path, streams: CountedStreams, before: dict[str, int]) -> dict[str, int]:
    """Return what is more than before, once nothing is or after some seconds: grpcio closes in threads of its own."""

    def more() -> dict[str, int]:
        now = what_is_there(folder, streams)
        return {kind: now[kind] - count for kind, count in before.items() if now[kind] > count}

    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while more():  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
    return more()


async def test_a_thousand_registrations_leave_nothing() -> None:
    """Threads, tasks, streams, sockets and file descriptors are as many after a thousand restarts as after twenty."""
    state = NodeState()
    state.learn_devices(node_of(1, "t4"), offer(1, "t4"), {})
    streams = CountedStreams(state)
    with short_folder() as folder:
        async with FakeKubelet(folder) as kubelet, registering(folder, state, streams):
            await kubelet.until(lambda kubelet: bool(kubelet.devices))
            for cycle in range(CYCLES):
                if cycle == WARM_UP_CYCLES:
                    before = what_is_there(folder, streams)
                await kubelet.restart()
                await kubelet.until(lambda kubelet: bool(kubelet.devices))
            assert len(kubelet.registered) == CYCLES + 1
            assert await left_behind(folder, streams, before) == {}
            assert entries(Path("/proc/self/task")) < before["threads"] + MOST_THREADS_OF_GRPCIO
            assert before["streams"] == streams.living == 1
            assert before["sockets"] == 2
    assert streams.living == 0
