"""How long is waited after failures in a row."""

from cta_group_core.backoff import wait_seconds


def test_each_wait_is_a_multiple_of_the_one_before_up_to_the_longest() -> None:
    """The first failure waits the first time, however long the longest is."""
    assert [wait_seconds(failures, 0.5, 3.0) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert [wait_seconds(failures, 5.0, 600.0, growth=4) for failures in range(1, 6)] == [5.0, 20.0, 80.0, 320.0, 600.0]


def test_a_failure_that_lasts_for_years_is_a_number_still() -> None:
    """Nothing overflows, and the wait never falls."""
    assert wait_seconds(10**9, 0.2, 30.0) == 30.0
    assert wait_seconds(10**9, 1.0, 1e12) == wait_seconds(100, 1.0, 1e12)
