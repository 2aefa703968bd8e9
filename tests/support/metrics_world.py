"""A monitored cluster without a cluster: the real metrics of a plugin and of two operator replicas, over HTTP.

What the processes tell is given by the test; how they tell it is the shipped code of both parts, and a real Prometheus
scrapes it with the labels that the chart's monitors give.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server

from cluster_harness.prometheus import Prometheus
from cluster_harness.prometheus_program import run_prometheus
from cluster_harness.scrape_jobs import Json, static_job
from cluster_harness.waiting import wait_for
from cta_group_core.ids import GpuUuid
from cta_group_core.plan import plan_slice
from cta_group_core.profiles import profile_named
from cta_group_operator.admission.metrics import AdmissionMetrics
from cta_group_operator.metrics import Figures
from cta_group_operator.metrics import Metrics as OperatorMetrics
from cta_group_plugin.metrics import Metrics as PluginMetrics
from cta_group_plugin.node_metrics import NodeFigures
from cta_group_plugin.ports import MpsState
from cta_group_plugin.report import AllocationReport, EnforcementReport, GpuReport, NodeReport

PROFILE = profile_named("h100-sxm")
GPU_COUNT = 8

Holding = tuple[int, str, str, int]
"""GPU index, namespace, pod, groups."""


@dataclass
class World:
    """What the processes say; change it and the next scrape shows it."""

    holdings: tuple[Holding, ...] = ()
    operator: list[Figures] = field(default_factory=lambda: [Figures(), Figures()])
    """What each replica of the operator sees."""

    def node(self) -> NodeReport:
        """Return the account of a node with eight H100."""
        gpus = tuple(self._gpu(index) for index in range(GPU_COUNT))
        return NodeReport(
            resource_name="nvidia.com/cta-group",
            driver_version="580.95.05",
            cuda_version="13.0",
            simulated=True,
            enforcement=EnforcementReport(compute=True, memory=True),
            conditions=(),
            gpus=gpus,
        )

    def mps(self) -> dict[GpuUuid, MpsState]:
        """Return a ready daemon for each GPU that is shared."""
        return {_uuid(index): MpsState(ready=True, reason="") for index in {held[0] for held in self.holdings}}

    def seen_by(self, replica: int) -> Figures:
        """Return what a replica of the operator sees."""
        return self.operator[replica]

    def _gpu(self, index: int) -> GpuReport:
        units = PROFILE.units
        held = [it for it in self.holdings if it[0] == index]
        free = units.capacity - sum(groups for _, _, _, groups in held)
        return GpuReport(
            uuid=_uuid(index),
            index=index,
            product=PROFILE.product,
            compute_capability=str(PROFILE.capability),
            sm_count=units.sm_count,
            capacity=units.capacity,
            minimum=units.minimum,
            step=units.step,
            free=free,
            largest_fit=free - free % units.step,
            allocations=tuple(_allocation(it) for it in held),
        )


@contextlib.contextmanager
def monitored(world: World, folder: Path) -> Iterator[Prometheus]:
    """Serve the world's metrics, run Prometheus over them, and yield it after its first scrape of each process."""
    plugin = PluginMetrics("test")
    plugin.describe_node(world.node, lambda: NodeFigures(world.mps()))
    with contextlib.ExitStack() as running:
        jobs = [_job(running, plugin.registry, "plugin")]
        for number in range(len(world.operator)):
            metrics = OperatorMetrics("test")
            AdmissionMetrics(metrics.registry)
            metrics.follow(partial(world.seen_by, number))
            jobs.append(_job(running, metrics.registry, f"operator-{number}"))
        prometheus = running.enter_context(run_prometheus(folder, jobs))
        wait_for(lambda: len(prometheus.query("up == 1")) == len(jobs), "a scrape of each process")
        yield prometheus


def holdings(namespace: str, pods: Iterable[tuple[int, str]], groups: int = 32) -> tuple[Holding, ...]:
    """Return what pods of a namespace hold, given as GPU index and name."""
    return tuple((index, namespace, pod, groups) for index, pod in pods)


def _job(running: contextlib.ExitStack, registry: CollectorRegistry, name: str) -> Json:
    server, thread = start_http_server(0, "127.0.0.1", registry)
    running.callback(thread.join)
    running.callback(server.server_close)
    running.callback(server.shutdown)
    labels = {"namespace": "cta-group", "pod": f"cta-group-{name}", "container": "main", "node": "node-1"}
    return static_job(name, [f"127.0.0.1:{server.server_port}"], labels)


def _allocation(held: Holding) -> AllocationReport:
    _, namespace, pod, groups = held
    memory_mib = plan_slice(PROFILE, groups).memory_mib
    return AllocationReport(namespace=namespace, pod=pod, container="vllm", groups=groups, memory_mib=memory_mib)


def _uuid(index: int) -> GpuUuid:
    return GpuUuid(f"GPU-{index:08d}-0000-0000-0000-000000000000")
