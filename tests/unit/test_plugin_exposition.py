"""The plugin's own exposition, judged by Prometheus' client: the same series as the library would tell."""

import math

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cta_group_plugin.exposition import (
    CollectorRegistry,
    Counter,
    CounterMetricFamily,
    Gauge,
    GaugeMetricFamily,
    Metric,
    generate_latest,
)

AWKWARD = 'a "quoted" back\\slash\nand a second line, {braces} = ü'


class Told:
    """A collector with one family of each kind."""

    def collect(self) -> list[Metric]:
        """Return them."""
        held = GaugeMetricFamily("held", "Groups held", labels=("pod", "gpu"))
        held.add_metric((AWKWARD, "0"), 32)
        held.add_metric(("b", "1"), 0.25)
        xids = CounterMetricFamily("xid", "XIDs", labels=("class",))
        xids.add_metric(("fatal",), 3)
        return [held, xids]


def read(text: bytes) -> dict[tuple[str, str, str], dict[tuple[tuple[str, str], ...], float]]:
    """Return what a scraper reads: by name, type and meaning of a family, the values of its series."""
    return {
        (family.name, family.type, family.documentation): {
            (("__name__", sample.name), *sorted(sample.labels.items())): sample.value for sample in family.samples
        }
        for family in text_string_to_metric_families(text.decode())
    }


def test_it_tells_what_the_library_would_tell() -> None:
    """Names, types, meanings, labels with awkward characters, and values, large and small."""
    ours, theirs = CollectorRegistry(), prometheus_client.CollectorRegistry()
    calls = ("calls", "Calls\nof kubelet")
    Counter(*calls, registry=ours).inc(1 << 40)
    prometheus_client.Counter(*calls, registry=theirs).inc(1 << 40)
    waits = ("waits", "Waits", ["call", "why"])
    for counter in (Counter(*waits, registry=ours), prometheus_client.Counter(*waits, registry=theirs)):
        counter.labels(call="Allocate", why=AWKWARD).inc(2)
        counter.labels(call="Register", why="")
    share = ("share", r"A share \ of all")
    Gauge(*share, registry=ours).set(1e-7)
    prometheus_client.Gauge(*share, registry=theirs).set(1e-7)
    library = read(prometheus_client.generate_latest(theirs))
    told = {family: series for family, series in library.items() if not family[0].endswith("_created")}
    assert len(told) == 3
    assert read(generate_latest(ours)) == told


def test_collectors_are_told_with_what_counts() -> None:
    """Families that are made anew for each scrape, each with its own labels."""
    registry = CollectorRegistry()
    registry.register(Told())
    found = read(generate_latest(registry))
    assert found["held", "gauge", "Groups held"] == {
        (("__name__", "held"), ("gpu", "0"), ("pod", AWKWARD)): 32,
        (("__name__", "held"), ("gpu", "1"), ("pod", "b")): 0.25,
    }
    assert found["xid", "counter", "XIDs"] == {(("__name__", "xid_total"), ("class", "fatal")): 3}


def test_value_of_a_series_is_found_by_all_its_labels() -> None:
    """A series with more labels, or none at all, is another one."""
    registry = CollectorRegistry()
    refused = Counter("refused", "Refused", ["call"], registry=registry)
    refused.labels(call="Allocate").inc()
    assert registry.get_sample_value("refused_total", {"call": "Allocate"}) == 1
    assert registry.get_sample_value("refused_total") is None
    assert registry.get_sample_value("refused", {"call": "Allocate"}) is None


def test_without_labels_a_series_is_there_at_zero_and_with_labels_when_it_is_named() -> None:
    """An alert over an increase needs the zero before it."""
    registry = CollectorRegistry()
    Counter("starts", "Starts", registry=registry)
    ready = Gauge("ready", "Ready", ["gpu"], registry=registry)
    assert registry.get_sample_value("starts_total") == 0
    assert registry.get_sample_value("ready", {"gpu": "a"}) is None
    ready.labels(gpu="a")
    assert registry.get_sample_value("ready", {"gpu": "a"}) == 0
    ready.remove("a")
    ready.remove("a")
    assert registry.get_sample_value("ready", {"gpu": "a"}) is None


@pytest.mark.parametrize("labels", [{}, {"cpu": "0"}, {"gpu": "0", "pod": "a"}])
def test_labels_that_a_metric_does_not_have_are_an_error(labels: dict[str, str]) -> None:
    """A series under other labels would break every query over it."""
    ready = Gauge("ready", "Ready", ["gpu"], registry=CollectorRegistry())
    with pytest.raises(KeyError):
        ready.labels(**labels)


def test_a_row_with_too_few_values_is_an_error() -> None:
    """Values without their labels would be told as those of another series."""
    with pytest.raises(ValueError, match="zip"):
        GaugeMetricFamily("held", "Held", labels=("pod", "gpu")).add_metric(("a",), 1)


def test_infinity_is_told_as_prometheus_reads_it() -> None:
    """A figure that is out of all bounds reaches the scraper too."""
    registry = CollectorRegistry()
    Gauge("wait", "Wait", registry=registry).set(math.inf)
    assert read(generate_latest(registry))["wait", "gauge", "Wait"] == {(("__name__", "wait"),): math.inf}
