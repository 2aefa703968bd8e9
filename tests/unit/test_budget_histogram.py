"""Quantiles, differences and sums of histograms, beside what Prometheus documents and beside the truth."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.budget.histogram import Histogram, summed
from cta_group_core.errors import InvalidText

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, math.inf)
COUNTS = st.lists(st.integers(0, 50), min_size=len(BOUNDS), max_size=len(BOUNDS))
SHARES = st.sampled_from([0.5, 0.75, 0.9, 0.95, 0.99])
VALUES = st.lists(st.floats(0.0001, 10, allow_nan=False), min_size=1, max_size=80)


def histogram(single: Sequence[float], bounds: Sequence[float] = BOUNDS) -> Histogram:
    """Return a histogram with so many observations in each bucket alone."""
    return Histogram(tuple(bounds), tuple(map(float, accumulate(single))))


def of_values(values: Sequence[float], bounds: Sequence[float] = BOUNDS) -> Histogram:
    """Return the histogram of latencies."""
    single = [0] * len(bounds)
    for value in values:
        single[bisect_left(bounds, value)] += 1
    return histogram(single, bounds)


def as_documented(share: float, single: Sequence[int]) -> float:
    """Return the quantile as Prometheus' documentation of histogram_quantile describes it, counted naively."""
    rank = share * sum(single)
    seen, start = 0.0, 0.0
    for bound, count in zip(BOUNDS, single, strict=True):
        if seen + count >= rank and count:
            return start if math.isinf(bound) else start + (bound - start) * (rank - seen) / count
        seen, start = seen + count, bound
    raise AssertionError("a quantile lies in some bucket")


@given(COUNTS.filter(any), SHARES)
def test_a_quantile_is_the_one_of_prometheus(single: list[int], share: float) -> None:
    """Linear between the bounds of its bucket; the last finite bound where it lies beyond."""
    found = histogram(single).quantile(share)
    assert found is not None
    assert found.seconds == pytest.approx(as_documented(share, single))


@given(VALUES, SHARES)
def test_the_true_quantile_is_between_the_bounds(values: list[float], share: float) -> None:
    """Whatever the latencies were: above the lower bound, at most the upper one."""
    true = sorted(values)[math.ceil(share * len(values)) - 1]
    found = of_values(values).quantile(share)
    assert found is not None
    assert found.low < true <= found.high
    assert found.low <= found.seconds <= found.high


def test_nothing_is_known_of_nothing() -> None:
    """No observation, or no bound but infinity: no quantile."""
    assert histogram([0] * len(BOUNDS)).quantile(0.95) is None
    assert Histogram((math.inf,), (5.0,)).quantile(0.95) is None


@given(COUNTS, COUNTS)
def test_a_difference_is_what_came_between(before: list[int], more: list[int]) -> None:
    """Counters that only grow lose nothing."""
    after = [one + other for one, other in zip(before, more, strict=True)]
    assert histogram(after).increase_since(histogram(before)) == histogram(more)


@given(COUNTS, COUNTS)
def test_a_server_that_began_anew_is_counted_from_its_start(before: list[int], after: list[int]) -> None:
    """Where any bucket lost observations all that is there came since; the result is a histogram in every case."""
    found = histogram(after).increase_since(histogram(before))
    if any(now < then for now, then in zip(after, before, strict=True)):
        assert found == histogram(after)
    assert found.total <= sum(after)


def test_other_bounds_are_a_server_that_began_anew() -> None:
    """A new release may have other buckets."""
    other = histogram([1, 2], (0.5, math.inf))
    assert other.increase_since(histogram([0] * len(BOUNDS))) == other


@given(VALUES, VALUES, st.sets(st.sampled_from(BOUNDS[:-1])), st.sets(st.sampled_from(BOUNDS[:-1])))
def test_a_sum_over_different_bounds_is_exact(
    one: list[float], two: list[float], some: set[float], others: set[float]
) -> None:
    """What two servers with different buckets tell together is what one would tell with the buckets of both."""
    first, second = (*sorted(some), math.inf), (*sorted(others), math.inf)
    common = (*sorted(some & others), math.inf)
    assert summed([of_values(one, first), of_values(two, second)]) == of_values([*one, *two], common)


@pytest.mark.parametrize(
    ("bounds", "counts"),
    [
        ((), ()),
        ((1.0,), (1.0,)),
        ((math.inf,), (1.0, 2.0)),
        ((2.0, 1.0, math.inf), (1.0, 1.0, 1.0)),
        ((1.0, 1.0, math.inf), (1.0, 1.0, 1.0)),
        ((0.0, math.inf), (1.0, 1.0)),
        ((math.nan, math.inf), (1.0, 1.0)),
        ((1.0, math.inf), (2.0, 1.0)),
        ((1.0, math.inf), (-1.0, 1.0)),
        ((1.0, math.inf), (1.0, math.nan)),
        ((1.0, math.inf), (math.nan, 1.0)),
        ((1.0, math.inf), (1.0, math.inf)),
    ],
)
def test_what_is_no_histogram_cannot_be_built(bounds: tuple[float, ...], counts: tuple[float, ...]) -> None:
    """Nothing downstream has to look again."""
    with pytest.raises(InvalidText):
        Histogram(bounds, counts)
