"""The metrics that describe the node: one collector over the newest account, bounded by the GPUs that it has."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cta_group_core.health.xid_catalogue import XidClass
from cta_group_core.ids import GpuUuid
from cta_group_core.names import METRIC_PREFIX
from cta_group_plugin.mps_trouble import MpsTrouble
from cta_group_plugin.occupancy_view import Occupancy
from cta_group_plugin.ports import MpsState
from cta_group_plugin.report import HEALTH_STATES, NodeReport, WithheldCause

_GPU_LABELS: Final = ("gpu_uuid", "gpu", "product")
_MIB_SHIFT: Final = 20


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """What is told of the GPUs beside their node's report."""

    mps: Mapping[GpuUuid, MpsState] = field(default_factory=dict)
    xids: Mapping[tuple[GpuUuid, XidClass], int] = field(default_factory=dict)
    """How many XIDs of each class every GPU had since the process started."""
    occupancy: Mapping[GpuUuid, Occupancy] = field(default_factory=dict)
    """Who is on the GPUs beside tenants within their limits."""
    withheld: Mapping[GpuUuid, WithheldCause] = field(default_factory=dict)
    """Why GPUs offer nothing."""
    most_clients: int = 0
    """How many containers may share a GPU."""


class NodeCollector(Collector):
    """Makes the series anew for each scrape; both callables are asked in the thread of the scrape."""

    def __init__(
        self,
        status: Callable[[], NodeReport],
        figures: Callable[[], NodeFigures],
        is_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        self._status = status
        self._figures = figures
        self._is_ours = is_ours

    def collect(self) -> Iterable[Metric]:
        """Return every series, or none while the node is another process' to describe."""
        if not self._is_ours():
            return []
        status, figures = self._status(), self._figures()
        excluded = [uuid for uuid, cause in figures.withheld.items() if cause is WithheldCause.EXCLUDED]
        return [
            *node_series(status, excluded),
            *health_series(status, figures.xids),
            withheld_series(status, figures.withheld),
            *mps_series(figures.mps, figures.most_clients),
            *occupancy_series(figures.occupancy),
        ]


def node_series(status: NodeReport, left_out: Collection[str] = ()) -> list[Metric]:
    """Return the series of one account of the node; GPUs that are left out on purpose have none."""
    capacity = _gauge("capacity", "CTA groups of a GPU; 0 when it is withheld", _GPU_LABELS)
    allocatable = _gauge("allocatable", "CTA groups that may be handed out: the capacity of a healthy GPU", _GPU_LABELS)
    largest = _gauge("largest_request", "Largest request that fits on a GPU now", _GPU_LABELS)
    allocated = _gauge(
        "allocated", "CTA groups that a container holds", ("namespace", "pod", "container", *_GPU_LABELS)
    )
    for gpu in status.gpus:
        if gpu.uuid in left_out:
            continue
        labels = (gpu.uuid, str(gpu.index), gpu.product)
        capacity.add_metric(labels, gpu.capacity)
        allocatable.add_metric(labels, gpu.capacity if gpu.is_placeable else 0)
        largest.add_metric(labels, gpu.largest_fit)
        for held in gpu.allocations:
            allocated.add_metric((held.namespace, held.pod, held.container, *labels), held.groups)
    simulated = _gauge("simulated", "1 when the GPUs of this node are simulated", ())
    simulated.add_metric((), int(status.simulated))
    return [capacity, allocatable, largest, allocated, simulated]


def health_series(status: NodeReport, told: Mapping[tuple[GpuUuid, XidClass], int]) -> list[Metric]:
    """Return the health of the GPUs that are there: one series for each state, and one for each class of XIDs."""
    states = _gauge("gpu_health", "1 for the state of health that a GPU is in", ("gpu_uuid", "phase"))
    xids = CounterMetricFamily(
        f"{METRIC_PREFIX}xid", "XIDs of a GPU since this process started, by their class", labels=("gpu_uuid", "class")
    )
    for gpu in status.gpus:
        for state in HEALTH_STATES:
            states.add_metric((gpu.uuid, state), int(state == gpu.health))
        for xid_class in XidClass:
            xids.add_metric((gpu.uuid, xid_class.value), told.get((GpuUuid(gpu.uuid), xid_class), 0))
    return [states, xids]


def withheld_series(status: NodeReport, causes: Mapping[GpuUuid, WithheldCause]) -> Metric:
    """Return one series for each reason that a GPU may have to offer nothing."""
    withheld = _gauge("withheld", "1 for the reason why a GPU offers no groups", ("gpu_uuid", "cause"))
    for gpu in status.gpus:
        for cause in WithheldCause:
            withheld.add_metric((gpu.uuid, cause.value), int(causes.get(GpuUuid(gpu.uuid)) is cause))
    return withheld


def mps_series(states: Mapping[GpuUuid, MpsState], most_clients: int) -> list[Metric]:
    """Return one series for each GPU that is shared, and how many clients each of them may have."""
    ready = _gauge("mps_ready", "1 when the MPS daemon of a shared GPU enforces its limits", ("gpu_uuid",))
    troubles = _gauge("mps_trouble", "1 for what is wrong with the MPS daemon of a shared GPU", ("gpu_uuid", "trouble"))
    for uuid, state in states.items():
        ready.add_metric((uuid,), int(state.ready))
        for trouble in MpsTrouble:
            troubles.add_metric((uuid, trouble.value), int(state.trouble is trouble))
    ceiling = _gauge("mps_clients_ceiling", "Containers that may share a GPU", ())
    ceiling.add_metric((), most_clients)
    return [ready, troubles, ceiling]


def occupancy_series(occupancy: Mapping[GpuUuid, Occupancy]) -> list[Metric]:
    """Return who is on each GPU that was looked at; what cannot be told there has no series."""
    labels = ("gpu_uuid",)
    seen = _gauge("processes_seen", "1 when every process on a GPU could be told apart from others", labels)
    unlimited = _gauge("unlimited_processes", "Processes of tenants that run without the limits of their slice", labels)
    foreign = _gauge("foreign_processes", "Processes on a GPU that belong to no tenant", labels)
    foreign_bytes = _gauge("foreign_memory_bytes", "Memory of a GPU that processes of no tenant use", labels)
    late = _gauge("late_memory_bytes", "Memory of ended processes that a GPU was not given back yet", labels)
    for uuid, here in occupancy.items():
        seen.add_metric((uuid,), int(not here.problem))
        late.add_metric((uuid,), here.late_mib << _MIB_SHIFT)
        if not here.problem or here.unlimited:
            unlimited.add_metric((uuid,), len(here.unlimited))
        if here.lists_foreign:
            foreign.add_metric((uuid,), len(here.foreign))
        if here.foreign_mib is not None:
            foreign_bytes.add_metric((uuid,), here.foreign_mib << _MIB_SHIFT)
    return [seen, unlimited, foreign, foreign_bytes, late]


def _gauge(name: str, meaning: str, labels: Iterable[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{METRIC_PREFIX}{name}", meaning, labels=tuple(labels))
