"""The metrics of a vLLM server, made by the library that vLLM makes them with, in both generations of names.

Names, labels and bounds are those of vLLM's ``v1/metrics/loggers.py``; what is observed is up to the test.
"""

import contextlib
import threading
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest, start_http_server

from cta_group_core.budget.objectives import Measure

TTFT_BOUNDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
ITL_BOUNDS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
REQUEST_BOUNDS = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)
_LABELS = ("model_name", "engine")


class _WholeLooks(CollectorRegistry):
    """A registry that nobody reads while something is being noted: many latencies are there all or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.noting = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        with self.noting:
            return iter(list(super().collect()))


class ServerMetrics:
    """The registry of one server. ``old``: the names of releases before 0.10."""

    def __init__(self, *, old: bool = False, model: str = "Qwen/Qwen3-4B") -> None:
        self.registry = _WholeLooks()
        self._model = model
        self._histograms = {
            Measure.TTFT: self._histogram("vllm:time_to_first_token_seconds", TTFT_BOUNDS),
            Measure.ITL: self._histogram(
                "vllm:time_per_output_token_seconds" if old else "vllm:inter_token_latency_seconds", ITL_BOUNDS
            ),
            Measure.E2E: self._histogram("vllm:e2e_request_latency_seconds", REQUEST_BOUNDS),
            Measure.QUEUE: self._histogram("vllm:request_queue_time_seconds", REQUEST_BOUNDS),
        }
        self._running = self._gauge("vllm:num_requests_running")
        self._waiting = self._gauge("vllm:num_requests_waiting")
        self._cache = self._gauge("vllm:gpu_cache_usage_perc" if old else "vllm:kv_cache_usage_perc")
        self._preemptions = Counter("vllm:num_preemptions", "text", _LABELS, registry=self.registry)
        self.load()
        self.preempt(0)
        for measure in Measure:
            self.observe(measure, 0.01, times=0)

    def observe(self, measure: Measure, seconds: float, *, times: int = 1, engine: str = "0") -> None:
        """Count latencies of one engine."""
        histogram = self._histograms[measure].labels(self._model, engine)
        with self.registry.noting:
            for _ in range(times):
                histogram.observe(seconds)

    def load(self, *, running: float = 0, waiting: float = 0, cache: float = 0) -> None:
        """Set the gauges of the first engine."""
        self._running.labels(self._model, "0").set(running)
        self._waiting.labels(self._model, "0").set(waiting)
        self._cache.labels(self._model, "0").set(cache)

    def preempt(self, times: int) -> None:
        """Count preempted requests."""
        self._preemptions.labels(self._model, "0").inc(times)

    def text(self) -> str:
        """Return the exposition."""
        return generate_latest(self.registry).decode()

    def _histogram(self, name: str, bounds: tuple[float, ...]) -> Histogram:
        return Histogram(name, "text", _LABELS, buckets=bounds, registry=self.registry)

    def _gauge(self, name: str) -> Gauge:
        return Gauge(name, "text", _LABELS, registry=self.registry)


@contextlib.contextmanager
def served_metrics(metrics: ServerMetrics) -> Iterator[int]:
    """Serve the metrics at the loopback address; yield the port."""
    server, thread = start_http_server(0, "127.0.0.1", metrics.registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
