"""From an event of a GPU to the list that kubelet sees, in one process with every part of the plugin."""

import asyncio
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from cta_group_core.health.state import HealthRules
from cta_group_core.ids import GpuUuid
from cta_group_core.profiles import profile_named
from cta_group_plugin.adapters.simulated import SimulatedSource
from cta_group_plugin.app import serve
from cta_group_plugin.edges import Edges
from cta_group_plugin.errors import GpuLost
from cta_group_plugin.ports import GpuEvent, GpuEventKind
from cta_group_plugin.settings import HealthSettings, RunSettings
from cta_group_plugin.testing import FakeGpuSource, FakeKubelet, FakeMpsControl, FakePodResources
from figures import Figures
from subjects import GPUS, GROUPS_PER_GPU, has_all_devices

_DEADLINE_SECONDS = 30.0


async def event_to_list(figures: Figures, events: int) -> None:
    """Let one GPU after the other fall off the bus and come back, and measure how long kubelet takes it for well."""
    inventory = SimulatedSource(profile_named("h100-sxm"), GPUS, "bench").inventory()
    source = FakeGpuSource(inventory)
    uuids = [gpu.uuid for gpu in inventory.gpus]
    with tempfile.TemporaryDirectory(prefix="cta-") as folder:
        settings = RunSettings(
            node_name="bench",
            device_plugin_dir=Path(folder),
            # A GPU comes back as soon as it may, or the measurement would take an hour.
            health=HealthSettings(HealthRules(clean_polls=1, most_doublings=0), poll_seconds=0.05, state_dir=None),
            metrics_address="",
            publish=False,
            log_level="error",
        )
        stopping = asyncio.Event()
        edges = Edges(source, FakeMpsControl(), FakePodResources(), None)
        async with FakeKubelet(Path(folder)) as kubelet:
            running = asyncio.create_task(serve(settings, edges, stopping))
            await kubelet.until(has_all_devices, deadline_seconds=_DEADLINE_SECONDS)
            for number in range(events):
                figures.add("event_to_list_ms", await _lost(kubelet, source, uuids[number % GPUS]))
            stopping.set()
            await running


async def _lost(kubelet: FakeKubelet, source: FakeGpuSource, uuid: GpuUuid) -> float:
    """Lose a GPU that is well, and return the milliseconds until kubelet is told; it is back some polls later."""
    await kubelet.until(lambda kubelet: _healthy(kubelet, uuid) == GROUPS_PER_GPU, deadline_seconds=_DEADLINE_SECONDS)
    since = time.perf_counter()
    source.push(GpuEvent(GpuEventKind.LOST, uuid, detail="fell off the bus"))
    source.told[uuid] = GpuLost("fell off the bus")  # what the next poll finds
    await kubelet.until(lambda kubelet: _healthy(kubelet, uuid) == 0, deadline_seconds=_DEADLINE_SECONDS)
    taken = (time.perf_counter() - since) * 1000
    del source.told[uuid]
    source.push(GpuEvent(GpuEventKind.RECOVERED, uuid))
    return taken


def _healthy(kubelet: FakeKubelet, uuid: GpuUuid) -> int:
    devices: Collection[tuple[str, str]] = kubelet.devices.items()
    return sum(health == "Healthy" for device, health in devices if device.startswith(uuid))
