"""Every metric of the device plugin: declared together, there from the start, bounded by what the node has.

Counters count. Everything that describes the node comes from one collector over the newest view, so that a series of a
pod that is gone disappears by itself, without a moment in which all of them are missing.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cta_group_core.health.xid_catalogue import XidClass
from cta_group_core.ids import GpuUuid
from cta_group_core.names import METRIC_PREFIX
from cta_group_plugin.ports import MpsState
from cta_group_plugin.report import HEALTH_STATES, NodeReport

CALLS: Final = ("GetPreferredAllocation", "Allocate", "PreStartContainer")
_GPU_LABELS: Final = ("gpu_uuid", "gpu", "product")

MpsStates = Mapping[GpuUuid, MpsState]
Xids = Mapping[tuple[GpuUuid, XidClass], int]
"""How many XIDs of each class every GPU had since the process started."""


class Metrics:
    """The registry of this process and what counts in it."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        self.registrations = self._counter("registrations", "Registrations with kubelet that succeeded")
        self.registration_failures = self._counter("registration_failures", "Registrations that kubelet did not take")
        self.refusals = Counter(
            f"{METRIC_PREFIX}refusals",
            "Calls of kubelet that were refused; PreStartContainer waits, the others fail the pod",
            ["call"],
            registry=self.registry,
        )
        for call in CALLS:
            self.refusals.labels(call=call)
        self.publish_failures = self._counter("publish_failures", "Writes of CTANode that failed")
        self.published = self._counter("published", "Writes of CTANode")
        self.record_failures = self._counter("health_record_failures", "Failures to read or keep the health record")
        build = Gauge(f"{METRIC_PREFIX}build_info", "Version of this process", ["version"], registry=self.registry)
        build.labels(version=version).set(1)

    def describe_node(
        self, status: Callable[[], NodeReport], mps: Callable[[], MpsStates], xids: Callable[[], Xids]
    ) -> None:
        """Add the series that describe the node; the callables return the newest account, from any thread."""
        self.registry.register(_NodeCollector(status, mps, xids))

    def _counter(self, name: str, meaning: str) -> Counter:
        return Counter(f"{METRIC_PREFIX}{name}", meaning, registry=self.registry)


class _NodeCollector(Collector):
    def __init__(
        self, status: Callable[[], NodeReport], mps: Callable[[], MpsStates], xids: Callable[[], Xids]
    ) -> None:
        self._status = status
        self._mps = mps
        self._xids = xids

    def collect(self) -> Iterable[Metric]:
        status = self._status()
        return [*node_series(status), *health_series(status, self._xids()), mps_series(self._mps())]


def node_series(status: NodeReport) -> list[Metric]:
    """Return the series of one account of the node."""
    capacity = _gauge("capacity", "CTA groups of a GPU; 0 when it is withheld", _GPU_LABELS)
    allocatable = _gauge("allocatable", "CTA groups that may be handed out: the capacity of a healthy GPU", _GPU_LABELS)
    largest = _gauge("largest_request", "Largest request that fits on a GPU now", _GPU_LABELS)
    allocated = _gauge(
        "allocated", "CTA groups that a container holds", ("namespace", "pod", "container", *_GPU_LABELS)
    )
    for gpu in status.gpus:
        labels = (gpu.uuid, str(gpu.index), gpu.product)
        capacity.add_metric(labels, gpu.capacity)
        allocatable.add_metric(labels, gpu.capacity if gpu.is_placeable else 0)
        largest.add_metric(labels, gpu.largest_fit)
        for held in gpu.allocations:
            allocated.add_metric((held.namespace, held.pod, held.container, *labels), held.groups)
    simulated = _gauge("simulated", "1 when the GPUs of this node are simulated", ())
    simulated.add_metric((), int(status.simulated))
    return [capacity, allocatable, largest, allocated, simulated]


def health_series(status: NodeReport, told: Xids) -> list[Metric]:
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


def mps_series(states: MpsStates) -> Metric:
    """Return one series for each GPU that is shared."""
    ready = _gauge("mps_ready", "1 when the MPS daemon of a shared GPU enforces its limits", ("gpu_uuid",))
    for uuid, state in states.items():
        ready.add_metric((uuid,), int(state.ready))
    return ready


def _gauge(name: str, meaning: str, labels: Iterable[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{METRIC_PREFIX}{name}", meaning, labels=tuple(labels))
