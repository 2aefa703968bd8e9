"""Every metric of the MPS supervisor. Labels are the GPUs of the node, and go with their daemons."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from cta_group_core.ids import GpuUuid
from cta_group_core.names import METRIC_PREFIX
from cta_group_plugin.mps_trouble import MpsTrouble
from cta_group_plugin.ports import MpsState

_LABELS: Final = ("gpu_uuid",)


class MpsMetrics:
    """The registry of this process and what counts in it."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        self._ready = self._gauge("mps_daemon_ready", "1 when the MPS daemon of a GPU answers with the demanded limits")
        self._trouble = self._gauge("mps_daemon_trouble", "1 for the trouble that an MPS daemon is in", "trouble")
        self._percent = self._gauge("mps_daemon_sm_percent", "Share of the SMs that a new MPS client gets at most")
        self._memory = self._gauge("mps_daemon_memory_mib", "Memory that a new MPS client gets at most, 0: not limited")
        self._clients = self._gauge("mps_clients", "Processes that are clients of the MPS daemon of a GPU")
        self._outlives = self._gauge("mps_daemon_outlives_pod", "1 when a daemon has a cgroup outside the supervisor's")
        self._starts = self._counter("mps_daemon_starts", "Starts of an MPS daemon")
        self._ends = self._counter("mps_daemon_ends", "MPS daemons that ended without being asked to")
        self._lost = self._counter("mps_clients_lost", "MPS clients that died with their daemon or its server")
        self._kills = self._counter("mps_daemon_kills", "MPS daemons killed because of a trouble", "trouble")
        build = Gauge(f"{METRIC_PREFIX}build_info", "Version of this process", ["version"], registry=self.registry)
        build.labels(version=version).set(1)

    def declare(self, gpu: GpuUuid) -> None:
        """Begin the series of a GPU, at zero."""
        self.observe_state(gpu, MpsState(ready=False, reason=""))
        for counter in (self._starts, self._ends, self._lost):
            counter.labels(gpu_uuid=gpu)
        for trouble in MpsTrouble:
            self._kills.labels(gpu_uuid=gpu, trouble=trouble)

    def observe_state(self, gpu: GpuUuid, state: MpsState) -> None:
        """Note what the daemon of a GPU answered last."""
        self._ready.labels(gpu_uuid=gpu).set(int(state.ready))
        for trouble in MpsTrouble:
            self._trouble.labels(gpu_uuid=gpu, trouble=trouble).set(int(state.trouble is trouble))
        self._percent.labels(gpu_uuid=gpu).set(state.sm_percent)
        self._memory.labels(gpu_uuid=gpu).set(state.memory_mib)
        self._clients.labels(gpu_uuid=gpu).set(len(state.client_pids))

    def observe_start(self, gpu: GpuUuid) -> None:
        """Count a start."""
        self._starts.labels(gpu_uuid=gpu).inc()

    def observe_cgroup(self, gpu: GpuUuid, *, own: bool) -> None:
        """Note whether a daemon outlives the supervisor's container."""
        self._outlives.labels(gpu_uuid=gpu).set(int(own))

    def observe_end(self, gpu: GpuUuid) -> None:
        """Count an end that nobody asked for."""
        self._ends.labels(gpu_uuid=gpu).inc()

    def observe_kill(self, gpu: GpuUuid, trouble: MpsTrouble) -> None:
        """Count a daemon that was killed; it counts as ended too."""
        self._kills.labels(gpu_uuid=gpu, trouble=trouble).inc()

    def observe_lost_clients(self, gpu: GpuUuid, clients: int) -> None:
        """Count clients that died with what they were connected to."""
        self._lost.labels(gpu_uuid=gpu).inc(clients)

    def forget_state(self, gpu: GpuUuid) -> None:
        """End the series that describe a daemon which is not wanted any more; what was counted stays."""
        for gauge in (self._ready, self._percent, self._memory, self._clients, self._outlives):
            gauge.remove(gpu)
        for trouble in MpsTrouble:
            self._trouble.remove(gpu, trouble)

    def _gauge(self, name: str, meaning: str, *more: str) -> Gauge:
        return Gauge(f"{METRIC_PREFIX}{name}", meaning, (*_LABELS, *more), registry=self.registry)

    def _counter(self, name: str, meaning: str, *more: str) -> Counter:
        return Counter(f"{METRIC_PREFIX}{name}", meaning, (*_LABELS, *more), registry=self.registry)
