"""Reading vLLM's metrics over HTTP: servers of both generations, the stand-in, and a real Prometheus beside it."""

import contextlib
from pathlib import Path

import pytest

from cluster_harness.prometheus_program import run_prometheus
from cluster_harness.scrape_jobs import static_job
from cluster_harness.waiting import wait_for
from cta_group_core.budget.histogram import summed
from cta_group_core.budget.objectives import Measure
from scripted_server import LOOPBACK, read
from stand_in_process import Server
from vllm_server_metrics import ITL_BOUNDS, REQUEST_BOUNDS, TTFT_BOUNDS, ServerMetrics, served_metrics


@pytest.mark.parametrize("old", [True, False], ids=["old", "new"])
async def test_a_server_of_each_generation_is_read(*, old: bool) -> None:
    """The text that vLLM's own metrics library serves, under the names of either generation."""
    metrics = ServerMetrics(old=old)
    metrics.observe(Measure.ITL, 0.03, times=7)
    metrics.load(running=3, waiting=2, cache=0.5)
    with served_metrics(metrics) as port:
        reading = await read(port)
    assert summed([one for (told, _), one in reading.histograms.items() if told is Measure.ITL]).total == 7
    assert (reading.running, reading.waiting, reading.cache_usage) == (3, 2, 0.5)


@pytest.mark.parametrize("words", [(), ("--stand-in-old-metrics",)], ids=["new", "old"])
async def test_the_stand_in_is_read(words: tuple[str, ...]) -> None:
    """What the demo's servers tell is what the operator reads, and in the buckets that vLLM has."""
    environment = {"CTA_GROUP_COUNT": "128", "CTA_GROUP_CAPACITY": "128", "CTA_GROUP_MEMORY_MIB": "80055"}
    server = Server(["serve", "m", "--port=0", *words], {**environment, "NVIDIA_VISIBLE_DEVICES": "GPU-0"}, None)
    try:
        server.wait_serving()
        server.post("/v1/completions", {"prompt": "x" * 40, "max_tokens": 5})
        port = server._port()
        assert port is not None
        reading = await read(port)
    finally:
        server.close()
    counts = {told: one.total for (told, _), one in reading.histograms.items()}
    assert counts == {Measure.TTFT: 1, Measure.ITL: 4, Measure.E2E: 1, Measure.QUEUE: 1}
    bounds = {told: set(one.bounds) for (told, _), one in reading.histograms.items()}
    assert bounds[Measure.TTFT] >= set(TTFT_BOUNDS)
    assert bounds[Measure.ITL] >= set(ITL_BOUNDS)
    assert bounds[Measure.E2E] == bounds[Measure.QUEUE] >= set(REQUEST_BOUNDS)
    assert reading.cache_usage == 0


async def test_a_quantile_is_the_one_that_prometheus_answers(tmp_path: Path) -> None:
    """A real Prometheus over the same two servers computes the same numbers."""
    servers = [ServerMetrics(model="a"), ServerMetrics(model="b")]
    for number, metrics in enumerate(servers, start=1):
        for step in range(60):
            metrics.observe(Measure.TTFT, 0.003 * step * step * number, times=1 + step % 3)
    with contextlib.ExitStack() as running:
        ports = [running.enter_context(served_metrics(one)) for one in servers]
        readings = [await read(port) for port in ports]
        jobs = [static_job("vllm", [f"{LOOPBACK}:{port}" for port in ports], {})]
        prometheus = running.enter_context(run_prometheus(tmp_path, jobs))
        wait_for(lambda: len(prometheus.query("up == 1")) == len(servers), "a scrape of each server")
        told = [one for reading in readings for (key, _), one in reading.histograms.items() if key is Measure.TTFT]
        for share in (0.5, 0.75, 0.9, 0.95, 0.99):
            # The library escapes the colon for a scraper that asks for OpenMetrics, as Prometheus does.
            buckets = '{__name__=~"vllm[:_]time_to_first_token_seconds_bucket"}'
            query = f"histogram_quantile({share}, sum by (le) ({buckets}))"
            (sample,) = prometheus.query(query)
            ours = summed(told).quantile(share)
            assert ours is not None
            assert ours.seconds == pytest.approx(sample.value)
