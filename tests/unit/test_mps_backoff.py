"""How long the supervisor waits before it starts a daemon again."""

from cta_group_plugin.mps.backoff import Backoff


def backoff() -> Backoff:
    """Return one that waits 1, 2, 4, 5, 5... seconds and is calm after a minute."""
    return Backoff(first_seconds=1.0, cap_seconds=5.0, calm_seconds=60.0)


def wait_after(tries: Backoff, now: float) -> float:
    """Fail at once and return how long is waited, in whole seconds."""
    tries.started(now)
    tries.failed(now)
    return next(seconds for seconds in range(100) if not tries.is_waiting(now + seconds))


def test_the_first_try_waits_for_nothing() -> None:
    """Nothing has failed yet, so it may be tried at once, whatever the clock shows."""
    assert not backoff().is_waiting(0.0)


def test_waits_double_up_to_the_cap() -> None:
    """Failures in a row wait longer and longer, and never longer than the cap, however many there are."""
    tries = backoff()
    assert [wait_after(tries, now) for now in range(5)] == [1, 2, 4, 5, 5]
    assert all(wait_after(tries, now) == 5 for now in range(5, 2000))


def test_a_long_life_is_forgiven() -> None:
    """What ran for the calm time begins with the shortest wait again; what ran shorter does not."""
    tries = backoff()
    wait_after(tries, 0.0)
    wait_after(tries, 10.0)
    tries.started(20.0)
    tries.failed(79.0)
    assert "4 s after that, failure 3" in tries.describe()
    tries.started(100.0)
    tries.failed(160.0)
    assert "1 s after that, failure 1" in tries.describe()
