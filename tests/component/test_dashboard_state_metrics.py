"""The first panels of the cluster dashboard with kube-state-metrics alone, and with it beside the own metrics."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from chart_rendering import CHART
from cluster_harness.dashboard import parse_dashboard
from cluster_harness.prometheus import Prometheus, Sample
from cluster_harness.prometheus_program import run_prometheus
from cluster_harness.scrape_jobs import static_job
from cluster_harness.waiting import wait_for
from cta_group_operator.metrics import Figures, QuotaFigures
from cta_group_operator.metrics import Metrics as OperatorMetrics
from cta_group_plugin.metrics import Metrics as PluginMetrics
from cta_group_plugin.node_metrics import NodeFigures
from metrics_world import World, holdings

_RESOURCE = "nvidia_com_cta_group"
_POD = ("namespace", "pod", "container", "node", "resource")
_Values = dict[tuple[str, ...], int]
_HELD: _Values = {("team-a", "a-1"): 32, ("team-a", "a-2"): 32, ("team-b", "b-1"): 32}


class _KubeStateMetrics(Collector):
    """The series of kube-state-metrics that the panels read: three pods hold 96 of 1024, one ended, one waits."""

    def collect(self) -> Iterator[Metric]:
        for name in ("kube_node_status_capacity", "kube_node_status_allocatable"):
            yield _family(name, ("node", "resource"), {("node-1", _RESOURCE): 1024, ("node-1", "cpu"): 64})
        asked: _Values = {(*pod, "vllm", "node-1", _RESOURCE): groups for pod, groups in _HELD.items()}
        over, waits = ("team-a", "over", "vllm", "node-1", _RESOURCE), ("team-a", "waits", "vllm", "", _RESOURCE)
        yield _family("kube_pod_container_resource_requests", _POD, {**asked, over: 64, waits: 32})
        phases: _Values = {
            (*pod, phase): int(phase == "Running") for pod in _HELD for phase in ("Running", "Succeeded")
        }
        others: _Values = {
            ("team-a", "over", "Succeeded"): 1,
            ("team-a", "over", "Running"): 0,
            ("team-a", "waits", "Pending"): 1,
        }
        yield _family("kube_pod_status_phase", ("namespace", "pod", "phase"), {**phases, **others})
        quota: _Values = {
            ("team-a", "requests.nvidia.com/cta-group", kind): v for kind, v in (("hard", 256), ("used", 96))
        }
        yield _family("kube_resourcequota", ("namespace", "resource", "type"), quota)


def _family(name: str, labels: tuple[str, ...], values: _Values) -> Metric:
    family = GaugeMetricFamily(name, "as kube-state-metrics tells it", labels=labels)
    for keys, value in values.items():
        family.add_metric(keys, value)
    return family


def _state_metrics() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_KubeStateMetrics())
    return registry


@contextlib.contextmanager
def _prometheus(folder: Path, registries: Mapping[str, CollectorRegistry]) -> Iterator[Prometheus]:
    """Run Prometheus with a target for each registry, and yield it after the first scrape of all."""
    jobs = []
    with contextlib.ExitStack() as running:
        for name, registry in registries.items():
            server, thread = start_http_server(0, "127.0.0.1", registry)
            running.callback(thread.join)
            running.callback(server.server_close)
            running.callback(server.shutdown)
            jobs.append(static_job(name, [f"127.0.0.1:{server.server_port}"], {"node": "node-1"}))
        prometheus = running.enter_context(run_prometheus(folder, jobs))
        wait_for(lambda: len(prometheus.query("up == 1")) == len(jobs), "a scrape of every target")
        yield prometheus


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Run a Prometheus that sees kube-state-metrics only."""
    with _prometheus(tmp_path_factory.mktemp("alone"), {"state": _state_metrics()}) as running:
        yield running


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Run a Prometheus that sees the project's own metrics too, which tell other numbers on purpose."""
    plugin, operator = PluginMetrics("test"), OperatorMetrics("test")
    world = World(holdings("team-a", [(0, "own")], groups=8))
    plugin.describe_node(world.node, lambda: NodeFigures(world.mps()))
    figures = Figures(leader=True, quotas=[QuotaFigures("own", hard=8, used=8, pending=0)])
    operator.follow(lambda: figures)
    registries = {"state": _state_metrics(), "plugin": plugin.registry, "operator": operator.registry}
    with _prometheus(tmp_path_factory.mktemp("beside"), registries) as running:
        yield running


def _queries() -> dict[str, dict[str, str]]:
    dashboard = parse_dashboard((CHART / "dashboards" / "cta-group-cluster.json").read_text())
    return {panel.title: {query.ref: query.expression for query in panel.queries} for panel in dashboard.panels}


QUERIES = _queries()


def _rows(samples: list[Sample], *labels: str) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.get(label, "") for label in labels): sample.value for sample in samples}


@pytest.mark.parametrize(("title", "number"), [("Groups", 1024), ("Held", 96), ("Free", 928)])
def test_the_numbers_on_top_need_nothing_but_kube_state_metrics(alone: Prometheus, title: str, number: float) -> None:
    """A pod that ended holds nothing, and neither does one without a node."""
    assert [sample.value for sample in alone.query(QUERIES[title]["A"])] == [number]


def test_holders_and_quotas_need_nothing_but_kube_state_metrics(alone: Prometheus) -> None:
    """Who holds what by what pods ask for; quotas by the ResourceQuotas of the namespaces."""
    holders = _rows(alone.query(QUERIES["Who holds what"]["A"]), "namespace", "pod")
    assert {pod: groups for pod, groups in holders.items() if groups} == _HELD
    assert [_rows(alone.query(QUERIES["Quotas"][ref]), "namespace") for ref in "AB"] == [
        {("team-a",): 256},
        {("team-a",): 96},
    ]
    held = _rows(alone.query(QUERIES["Groups held, by namespace"]["A"]), "namespace")
    assert held == {("team-a",): 64, ("team-b",): 32}


def test_with_both_exporters_nothing_is_told_twice(beside: Prometheus) -> None:
    """The project's own metrics are nearer to the truth and win in each panel."""
    assert [sample.value for sample in beside.query(QUERIES["Held"]["A"])] == [8]
    assert _rows(beside.query(QUERIES["Who holds what"]["A"]), "namespace", "pod") == {("team-a", "own"): 8}
    assert _rows(beside.query(QUERIES["Quotas"]["A"]), "quota", "namespace") == {("own", ""): 8}
    assert _rows(beside.query(QUERIES["Groups held, by namespace"]["A"]), "namespace") == {("team-a",): 8}
