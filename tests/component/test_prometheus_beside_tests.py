"""The real Prometheus that tests and the demo use: what it scrapes, what it answers, and that it ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from cluster_harness.errors import QueryError, StartError
from cluster_harness.prometheus import Prometheus, Sample
from cluster_harness.prometheus_program import run_prometheus
from cluster_harness.scrape_jobs import static_job
from cluster_harness.waiting import wait_for

RULES = [
    {"name": "test", "rules": [{"alert": "Held", "expr": "held > 0", "annotations": {"summary": "{{ $labels.pod }}"}}]}
]


@pytest.fixture(scope="module")
def held() -> Gauge:
    """Return a gauge with the groups of two pods."""
    gauge = Gauge("held", "Groups held", ["namespace", "pod"], registry=CollectorRegistry())
    gauge.labels(namespace="team-a", pod="one").set(32)
    gauge.labels(namespace="team-a", pod="two").set(64)
    return gauge


@pytest.fixture(scope="module")
def prometheus(held: Gauge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Run Prometheus over a server with the gauge and wait for its first scrape, which it makes after five seconds."""
    folder = tmp_path_factory.mktemp("prometheus")
    registry = CollectorRegistry()
    registry.register(held)
    server, thread = start_http_server(0, "127.0.0.1", registry)
    address = f"127.0.0.1:{server.server_port}"
    with run_prometheus(folder, [static_job("pods", [address], {"namespace": "cta-group"})], RULES) as running:
        wait_for(lambda: running.query("held"), "the first scrape")
        yield running
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_query_returns_samples_with_their_labels(prometheus: Prometheus) -> None:
    """A sum over scraped series comes back as numbers with labels; a series' own label wins over its target's."""
    assert prometheus.query('sum by (namespace) (held{namespace="team-a"})') == [Sample({"namespace": "team-a"}, 96)]
    assert prometheus.query("vector(2) + 1") == [Sample({}, 3)]
    assert prometheus.query("scalar(held{pod='one'})") == [Sample({}, 32)]
    assert prometheus.label_values('held{namespace="team-a"}', "pod") == ["one", "two"]
    assert "held" in prometheus.metric_names()


def test_a_series_that_the_server_drops_vanishes(prometheus: Prometheus, held: Gauge) -> None:
    """A series that is gone from one scrape is gone from the next answer, not five minutes later."""
    held.labels(namespace="team-b", pod="short-lived").set(8)
    wait_for(lambda: prometheus.query('held{namespace="team-b"}'), "the series to be scraped")
    held.remove("team-b", "short-lived")
    wait_for(lambda: not prometheus.query('held{namespace="team-b"}'), "the series to vanish")


def test_a_range_holds_the_points_since_its_start(prometheus: Prometheus) -> None:
    """A range query returns one series with values at the steps asked for."""
    now = prometheus.query("time()")[0].value
    (series,) = prometheus.query_range('sum(held{namespace="team-a"})', now, now + 2, 1)
    assert [value for _, value in series.points] == [96, 96, 96]


def test_what_it_scrapes_is_known_with_its_health(prometheus: Prometheus) -> None:
    """A target says its job, its address and that its last scrape went well."""
    (target,) = prometheus.targets()
    assert (target.job, target.health, target.error) == ("pods", "up", "")


def test_its_rules_are_evaluated(prometheus: Prometheus) -> None:
    """An alert whose expression is true fires with the labels of the series."""
    alerts = wait_for(lambda: prometheus.query('ALERTS{namespace="team-a",alertstate="firing"}'), "the alert")
    assert {alert.labels["pod"] for alert in alerts} == {"one", "two"}


def test_a_query_that_does_not_parse_is_refused_with_the_sentence(prometheus: Prometheus) -> None:
    """The error has the query and what Prometheus says about it."""
    with pytest.raises(QueryError, match=r"sum\(: .*parse error"):
        prometheus.query("sum(")


def test_a_configuration_that_is_wrong_is_an_error_with_the_log(tmp_path: Path) -> None:
    """A rule that does not parse ends the start, and the error says which."""
    rules = [{"name": "wrong", "rules": [{"alert": "Wrong", "expr": "sum("}]}]
    with pytest.raises(StartError, match="parse error"), run_prometheus(tmp_path, [], rules):
        pass


def test_nothing_is_left_when_the_block_ends(tmp_path: Path) -> None:
    """The process is gone with the block."""
    with run_prometheus(tmp_path, []) as running:
        assert running.is_ready()
    assert not running.is_ready()
