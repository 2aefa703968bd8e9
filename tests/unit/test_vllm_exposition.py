"""Reading vLLM's metrics: both generations of names, and texts that are none."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.budget.objectives import Measure
from cta_group_core.budget.window import Reading
from cta_group_operator.adapters.vllm_exposition import read_exposition
from cta_group_operator.errors import MetricsUnreadable
from vllm_server_metrics import ITL_BOUNDS, ServerMetrics

BUCKET = "vllm:time_to_first_token_seconds_bucket"
LABELS = 'engine="0",model_name="m"'


def a_server(*, old: bool) -> ServerMetrics:
    """Return a server with some history and load."""
    server = ServerMetrics(old=old)
    server.observe(Measure.TTFT, 0.3, times=3)
    server.observe(Measure.TTFT, 5000)
    server.observe(Measure.TTFT, 0.3, times=2, engine="1")
    server.observe(Measure.ITL, 0.03, times=40)
    server.observe(Measure.E2E, 1.2, times=3)
    server.observe(Measure.QUEUE, 0.2, times=3)
    server.load(running=5, waiting=2, cache=0.25)
    server.preempt(4)
    return server


def total(reading: Reading, measure: Measure) -> float:
    """Return how many latencies all series of a measure hold."""
    return sum(one.total for (told, _), one in reading.histograms.items() if told is measure)


@pytest.mark.parametrize("old", [True, False], ids=["old", "new"])
def test_both_generations_tell_the_same(*, old: bool) -> None:
    """Latencies by engine, load and preemptions, whatever their names are."""
    reading = read_exposition(a_server(old=old).text())
    assert [total(reading, one) for one in (Measure.TTFT, Measure.ITL, Measure.E2E, Measure.QUEUE)] == [6, 40, 3, 3]
    assert (reading.running, reading.waiting, reading.cache_usage) == (5, 2, 0.25)
    assert sum(reading.preemptions.values()) == 4
    (itl,) = (one for (told, _), one in reading.histograms.items() if told is Measure.ITL)
    assert itl.bounds == (*ITL_BOUNDS, math.inf)
    assert len([key for key in reading.histograms if key[0] is Measure.TTFT]) == 2
    assert {len(series) for _, series in reading.histograms} == {32}  # however long the labels are


def test_a_latency_under_two_names_is_counted_once() -> None:
    """Releases between the generations tell the time between tokens under both names."""
    old = "vllm:time_per_output_token_seconds"
    lines = [line for line in a_server(old=True).text().splitlines() if line.startswith(old)]
    text = a_server(old=False).text() + "\n".join([*lines, ""])
    assert old in text
    assert total(read_exposition(text), Measure.ITL) == 40


def test_an_escaped_colon_is_one() -> None:
    """The library writes names without their colon for who asks for OpenMetrics."""
    server = a_server(old=False)
    assert read_exposition(server.text().replace("vllm:", "vllm_")) == read_exposition(server.text())


def test_what_a_server_does_not_tell_is_not_known() -> None:
    """No cache usage, no queue: an early release."""
    reading = read_exposition("vllm:num_requests_running 3\n")
    assert (reading.running, reading.cache_usage, reading.histograms) == (3, None, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no latency or load under a name of vLLM's"),
        ("<html><body>vllm:num_requests_running</body></html>", "no latency or load"),
        ("# TYPE up gauge\nup 1\n", "no latency or load"),
        ("vllm:num_requests_running", "not Prometheus' text format"),
        ("vllm:num_requests_running{ 3", "not Prometheus' text format"),
        ("vllm:num_requests_running three", "not Prometheus' text format"),
        ("vllm:num_requests_running NaN", "not Prometheus' text format"),
        ("vllm:num_requests_running -1", "no count and no share"),
        ("vllm:num_requests_running 1e300", "no count and no share"),
        ("vllm:num_preemptions_total +Inf", "no count and no share"),
        (f"{BUCKET}{{{LABELS}}} 3", "not Prometheus' text format"),
        (f'{BUCKET}{{{LABELS},le="x"}} 3', "not Prometheus' text format"),
        (f'{BUCKET}{{{LABELS},le="1"}} 3', "the last not infinite"),
        (f'{BUCKET}{{{LABELS},le="1e30"}} 3', "a bound of 1e+30 s"),
        (f'{BUCKET}{{{LABELS},le="1"}} 3\n{BUCKET}{{{LABELS},le="+Inf"}} 2', "whose counts fall"),
        (f'{BUCKET}{{{LABELS},le="1"}} 1\n{BUCKET}{{{LABELS},le="1"}} 1\n{BUCKET}{{le="+Inf"}} 2', "not infinite"),
        (f'{BUCKET}{{{LABELS},le="-1"}} 1\n{BUCKET}{{{LABELS},le="+Inf"}} 2', "not above 0"),
        (f'vllm:num_requests_running{{x="{"a" * 3000}"}} 1', "longer than 2048 characters"),
        ("vllm:num_requests_running 1\n" * 2001, "over 2000"),
        (f'{BUCKET}{{{LABELS},le="+Inf"}} 2.5', "no count and no share"),
        ("vllm:num_preemptions_total 0.5", "no count and no share"),
    ],
)
def test_what_cannot_be_metrics_is_refused(text: str, said: str) -> None:
    """As a whole, with the reason."""
    with pytest.raises(MetricsUnreadable, match=said.replace("+", r"\+")):
        read_exposition(text)


_PIECES = st.sampled_from(
    [
        BUCKET,
        "vllm:num_requests_running",
        "{",
        "}",
        '"',
        ",",
        "=",
        "le",
        "+Inf",
        " ",
        "\n",
        "\\",
        "#",
        "1",
        "0.5",
        "é",
        "\r",
    ]
)


@given(st.text(max_size=200) | st.lists(_PIECES, max_size=40).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text breaks the reader."""
    try:
        reading = read_exposition(text)
    except MetricsUnreadable:
        return
    assert reading.running >= 0
