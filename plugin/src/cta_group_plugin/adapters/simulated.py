"""Simulated GPUs: what a driver would tell of a node with some well-known product. No GPU is behind them.

For demos and tests. Everything that shows them says that they are simulated. Their UUIDs are made from the node's name
and the index, so that they stay the same over restarts, as kubelet expects of device ids.
"""

import threading
import uuid
from collections.abc import Mapping, Sequence

from cta_group_core.ids import GpuUuid
from cta_group_core.links import Closeness
from cta_group_core.profiles import GpuProfile
from cta_group_core.units import SmCountSources
from cta_group_plugin.gpu_source import GpuUse, Survey, Vitals, read_inventory
from cta_group_plugin.ports import GpuEvent, GpuFacts, Inventory
from cta_group_plugin.report import PcieLink

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "simulated.ctagroup.dev")


class SimulatedSource:
    """Implements :class:`cta_group_plugin.gpu_source.GpuSource` without any driver."""

    def __init__(self, profile: GpuProfile, count: int, node_name: str) -> None:
        # As on machines with two processors, each with a half of the GPUs.
        nodes = [2 * index // count for index in range(count)]
        self._gpus = tuple(_facts(profile, index, node_name, numa_node) for index, numa_node in enumerate(nodes))
        self._closed = threading.Event()

    def open(self) -> None:
        """Nothing to open."""

    def survey(self) -> Survey:
        """Say how many GPUs are simulated."""
        return Survey(driver_version=None, cuda_version=None, count=len(self._gpus), simulated=True)

    def read(self, index: int) -> GpuFacts:
        """Return the same GPU each time."""
        return self._gpus[index]

    def inventory(self) -> Inventory:
        """Read all GPUs."""
        return read_inventory(self)

    def vitals(self, gpu: GpuUuid) -> Vitals:
        """Say that nothing is known of its health, which is never bad."""
        del gpu
        return Vitals()

    def use(self, gpu: GpuUuid) -> GpuUse:
        """Return none: nothing can run on these GPUs."""
        del gpu
        return GpuUse()

    def links(self, gpus: Sequence[GpuUuid]) -> Mapping[frozenset[GpuUuid], Closeness]:
        """Return none: no GPU is preferred to another."""
        del gpus
        return {}

    def wait_events(self, timeout_seconds: float) -> tuple[GpuEvent, ...]:
        """Return none: nothing ever happens to these GPUs."""
        self._closed.wait(timeout_seconds)
        return ()

    def close(self) -> None:
        """End a wait that is going on."""
        self._closed.set()


def simulated_uuid(node_name: str, index: int) -> GpuUuid:
    """Return the UUID of a simulated GPU; always the same for a node and an index."""
    return GpuUuid(f"GPU-{uuid.uuid5(_NAMESPACE, f'{node_name}/{index}')}")


def _facts(profile: GpuProfile, index: int, node_name: str, numa_node: int) -> GpuFacts:
    return GpuFacts(
        uuid=simulated_uuid(node_name, index),
        index=index,
        product=profile.product,
        capability=profile.capability,
        sm_sources=SmCountSources(
            profile_sms=profile.sm_count if profile.has_mig else None, cuda_cores=profile.cuda_cores
        ),
        memory_total_mib=profile.memory_total_mib,
        driver_reserved_mib=profile.nvml_reserved_mib,
        mig_enabled=False,
        mig_pending=False,
        minor=index,
        numa_node=numa_node,
        link=PcieLink(
            width=profile.pcie_width,
            width_max=profile.pcie_width,
            generation=profile.pcie_generation,
            generation_max=profile.pcie_generation,
        ),
        copy_engines=profile.copy_engines,
        compute_mode="Default",
    )
