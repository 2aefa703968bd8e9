"""The grammar of a latency budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.budget.objectives import QUANTILES, Budget, Measure, Objective, duration
from cta_group_core.errors import InvalidText
from cta_group_core.names import ANNOTATION_BUDGET


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ttft=400ms,itl=30ms", [("ttft-p95", 0.4), ("itl-p95", 0.03)]),
        ("ttft-p99=2s", [("ttft-p99", 2.0)]),
        (" itl-p50 = 12.5ms , e2e-p90=30s, queue=0.25s", [("itl-p50", 0.0125), ("e2e-p90", 30.0), ("queue-p95", 0.25)]),
        ("ttft-p50=100ms,ttft-p99=1s", [("ttft-p50", 0.1), ("ttft-p99", 1.0)]),
    ],
)
def test_a_budget_is_read(text: str, expected: list[tuple[str, float]]) -> None:
    """Measures, quantiles and units; p95 where none is said, spaces where people put them."""
    assert [(one.name, one.limit_seconds) for one in Budget.parse(text).objectives] == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1 to 256 characters"),
        ("   ", "1 to 256 characters"),
        ("x" * 300, "1 to 256 characters"),
        ("fast", "'fast' has not the form MEASURE=LIMIT"),
        ("ttft=1s,", "'' has not the form"),
        ("ttft=1s=2s", "has not the form"),
        ("tpot=10ms", "'tpot' is no measure; there are ttft, itl, e2e, queue"),
        ("TTFT=1s", "'TTFT' is no measure"),
        ("ttft-p42=1s", "there are p50, p75, p90, p95, p99"),
        ("ttft-p=1s", "'ttft-p' is no measure"),
        ("ttft-p99999999999999999999=1s", "no quantile that is offered"),
        ("ttft=400", "'400', not a number with ms or s behind it"),
        ("ttft=-1s", "not a number with ms or s"),
        ("ttft=1e3s", "not a number with ms or s"),
        ("ttft=\u0661s", "not a number with ms or s"),
        ("ttft=0ms", "not from 0.001ms to 3600s"),
        ("ttft=2h", "not a number with ms or s"),
        ("ttft=3601s", "not from 0.001ms to 3600s"),
        ("ttft=1s,ttft-p95=2s", "ttft-p95 is in it twice"),
    ],
)
def test_what_is_no_budget_is_refused_in_words(text: str, said: str) -> None:
    """The message names the annotation, what was given, what is allowed, and an example."""
    with pytest.raises(InvalidText) as refused:
        Budget.parse(text)
    message = str(refused.value)
    assert message.startswith(f"annotation {ANNOTATION_BUDGET}: ")
    assert said in message
    assert message.endswith("write it like ttft=400ms,itl-p99=30ms")
    assert len(message) < 600


@given(st.text(max_size=60) | st.text(alphabet="tfil-p59=ms,. 0", max_size=40))
def test_reading_is_total(text: str) -> None:
    """Any text is a budget, which reads the same when it is written out, or is refused."""
    try:
        budget = Budget.parse(text)
    except InvalidText:
        return
    again = Budget.parse(str(budget))
    assert [one.name for one in again.objectives] == [one.name for one in budget.objectives]
    for one, other in zip(again.objectives, budget.objectives, strict=True):
        assert one.limit_seconds == pytest.approx(other.limit_seconds, rel=0.01)


@pytest.mark.parametrize("percent", QUANTILES)
def test_a_quantile_needs_observations_beyond_it(percent: int) -> None:
    """Twenty at least, and for p99 a hundred: one of them is slower than the quantile."""
    needed = Objective(Measure.TTFT, percent, 1.0).needed
    assert needed >= 20
    assert needed * (100 - percent) >= 100


def test_durations_are_written_as_people_do() -> None:
    """Milliseconds below a second, three figures."""
    assert [duration(one) for one in (0.0005, 0.0123456, 0.4, 1.25, 3600)] == [
        "0.5ms",
        "12.3ms",
        "400ms",
        "1.25s",
        "3600s",
    ]
