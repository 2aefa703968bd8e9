"""Supervisors of a simulated node inside the test's process, each stopped with the test."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from cta_group_core.ids import GpuUuid
from cta_group_plugin.mps.app import build_supervisor
from cta_group_plugin.mps.folders import gpus_with_folders
from cta_group_plugin.mps.metrics import MpsMetrics
from cta_group_plugin.mps.supervisor import MpsSupervisor
from cta_group_plugin.mps.timing import Timing
from cta_group_plugin.ports import ComputeModes, MpsDemand, MpsState
from cta_group_plugin.settings import MpsSettings
from simulated_mps import FAST, SimulatedNode

ONE = GpuUuid("GPU-1")
TWO = GpuUuid("GPU-2")


@dataclass(slots=True)
class Supervising:
    """The supervisors of one node, and what they count."""

    node: SimulatedNode
    stack: AsyncExitStack
    metrics: MpsMetrics = field(default_factory=lambda: MpsMetrics("test"))

    async def start(
        self, timing: Timing = FAST, *, settings: MpsSettings | None = None, modes: ComputeModes | None = None
    ) -> MpsSupervisor:
        """Start one as the command does: it adopts what runs."""
        supervisor = build_supervisor(settings or self.node.settings, self.metrics, timing, modes)
        await supervisor.adopt(gpus_with_folders(self.node.root))
        self.stack.push_async_callback(supervisor.stop)
        return supervisor

    def count(self, metric: str, gpu: GpuUuid = ONE, **labels: str) -> float | None:
        """Return the value of a metric, named without its prefix; None when there is no such series."""
        return self.metrics.registry.get_sample_value(f"cta_group_{metric}", {"gpu_uuid": gpu, **labels})


@asynccontextmanager
async def supervising(node: SimulatedNode) -> AsyncIterator[Supervising]:
    """Start supervisors of ``node`` that stop when the block ends."""
    async with AsyncExitStack() as stack:
        yield Supervising(node, stack)


def share(gpu: GpuUuid = ONE, sm_percent: int = 25, memory_mib: int = 17766) -> MpsDemand:
    """Return the demand of a share, by default a quarter of an 80 GB H100."""
    return MpsDemand(gpu=gpu, sm_percent=sm_percent, memory_mib=memory_mib)


async def state_of(supervisor: MpsSupervisor, demand: MpsDemand | None = None) -> MpsState:
    """Demand one share, by default of GPU-1, and return the state of its GPU."""
    demand = demand or share()
    return (await supervisor.sync([demand]))[demand.gpu]
