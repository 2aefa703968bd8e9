"""What several servers tell over time comes to what was really observed, through restarts, new pods and gone ones."""

import math
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.budget.histogram import Histogram
from cta_group_core.budget.objectives import Measure
from cta_group_core.budget.window import WINDOW_SECONDS, Reading, Window

BOUNDS = (0.1, 1.0, math.inf)
KEY = (Measure.TTFT, "engine 0")


def reading(
    fast: int, slow: int = 0, *, preemptions: int = 0, waiting: float = 0, cache: float | None = None
) -> Reading:
    """Return what a server tells that had so many fast and slow first tokens."""
    counts = (float(fast), float(fast + slow), float(fast + slow))
    return Reading(
        {KEY: Histogram(BOUNDS, counts)}, {"engine 0": float(preemptions)}, waiting=waiting, cache_usage=cache
    )


STEPS = st.lists(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from(["same", "same", "same", "again", "silent"])),
        min_size=3,
        max_size=3,
    ),
    min_size=2,
    max_size=15,
)


@given(STEPS)
def test_the_window_counts_what_was_observed_since_the_first_look(steps: list[list[tuple[int, int, str]]]) -> None:
    """Of three servers, which are started again or cannot be read now and then; only what a restart hides may miss."""
    window = Window()
    counters: dict[str, list[int]] = {}
    seen: dict[str, list[int]] = {}
    expected: dict[str, int] = defaultdict(int)
    for number, step in enumerate(steps):
        readings = {}
        for pod, (fast, slow, what) in enumerate(step):
            uid = f"pod-{pod}"
            if what == "again":
                counters[uid] = [0, 0]
            now = counters.setdefault(uid, [0, 0])
            now[0], now[1] = now[0] + fast, now[1] + slow
            if what == "silent":
                continue
            readings[uid] = reading(*now)
            if uid in seen:
                # A counter that is above its last value again cannot be told from one that only grew.
                grew = now[0] >= seen[uid][0] and now[1] >= seen[uid][1]
                expected["fast"] += now[0] - seen[uid][0] if grew else now[0]
                expected["slow"] += now[1] - seen[uid][1] if grew else now[1]
            seen[uid] = list(now)
        window = window.after(float(number), readings, [f"pod-{pod}" for pod in range(3)])
    observed = window.observed()
    if observed is None:
        return
    latencies = observed.latencies.get(Measure.TTFT)
    counts = latencies.counts if latencies is not None else (0.0, 0.0, 0.0)
    assert counts == (expected["fast"], expected["fast"] + expected["slow"], expected["fast"] + expected["slow"])


WHOLE = st.integers(0, 2**53)
HOSTILE = st.lists(st.tuples(st.floats(1e-9, 1e6), WHOLE), max_size=6, unique_by=lambda pair: pair[0])


@given(st.lists(st.dictionaries(st.sampled_from("abc"), HOSTILE, max_size=3), min_size=2, max_size=5))
def test_whatever_counts_servers_tell_the_window_holds(steps: list[dict[str, list[tuple[float, int]]]]) -> None:
    """Any whole counts in any buckets, rising and falling, come to histograms that can be judged."""
    window = Window()
    for number, step in enumerate(steps):
        readings = {}
        for uid, buckets in step.items():
            bounds = sorted(bound for bound, _ in buckets)
            counts = sorted(float(count) for _, count in buckets)
            last = counts[-1] if counts else 7.0
            readings[uid] = Reading({KEY: Histogram((*bounds, math.inf), (*counts, last))})
        window = window.after(float(number), readings, "abc")
    observed = window.observed()
    for histogram in observed.latencies.values() if observed is not None else ():
        found = histogram.quantile(0.95)
        assert found is None or found.low <= found.seconds <= found.high


def test_two_looks_are_needed() -> None:
    """One reading tells where the counters are, not what was added to them."""
    window = Window().after(0.0, {"a": reading(100)}, ["a"])
    assert window.observed() is None
    observed = window.after(30.0, {"a": reading(140)}, ["a"]).observed()
    assert observed is not None
    assert (observed.latencies[Measure.TTFT].total, observed.seconds, observed.pods) == (40, 30, 1)


def test_a_look_that_nobody_answered_is_none() -> None:
    """Servers that are away for a moment take nothing from what they told before."""
    window = Window().after(0.0, {"a": reading(0)}, ["a"]).after(1.0, {}, ["a"])
    assert window.observed() is None
    observed = window.after(2.0, {"a": reading(5)}, ["a"]).observed()
    assert observed is not None
    assert observed.latencies[Measure.TTFT].total == 5


def test_what_is_older_than_the_window_is_forgotten() -> None:
    """Latencies of an hour ago do not count, and neither does the time of a server that was away for so long."""
    window = Window().after(0.0, {"a": reading(0)}, ["a"]).after(10.0, {"a": reading(50)}, ["a"])
    later = window.after(20 + WINDOW_SECONDS, {"a": reading(90)}, ["a"])
    assert later.observed() is None
    observed = later.after(30 + WINDOW_SECONDS, {"a": reading(97)}, ["a"]).observed()
    assert observed is not None
    assert observed.latencies[Measure.TTFT].total == 7


def test_a_pod_that_is_gone_stays_in_the_window_and_leaves_no_counter() -> None:
    """What it served counts until it is old; a pod of its name that comes later begins at its own counters."""
    window = Window().after(0.0, {"a": reading(0), "b": reading(0)}, ["a", "b"])
    window = window.after(1.0, {"a": reading(5), "b": reading(5)}, ["a", "b"]).after(2.0, {"a": reading(6)}, ["a"])
    assert set(window.newest) == {"a"}
    observed = window.observed()
    assert observed is not None
    assert observed.latencies[Measure.TTFT].total == 11


def test_load_is_the_mean_of_the_queue_and_the_most_of_the_cache() -> None:
    """Preemptions add up, through a restart too; the fullest cache counts, and none where none tells."""
    first = {"a": reading(0, preemptions=7, waiting=4, cache=0.2), "b": reading(0, waiting=0)}
    second = {"a": reading(0, preemptions=2, waiting=2, cache=0.7), "b": reading(0, waiting=2, preemptions=1)}
    observed = Window().after(0.0, first, "ab").after(1.0, second, "ab").observed()
    assert observed is not None
    assert (observed.waiting, observed.cache_usage, observed.preemptions) == (2.0, 0.7, 3.0)
