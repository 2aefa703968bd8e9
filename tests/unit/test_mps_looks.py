"""Who waits for a look at a daemon, and how long looks take."""

import asyncio

import pytest

from cta_group_plugin.mps.looks import Looks


async def test_a_look_that_is_under_way_is_not_the_next_one() -> None:
    """Whoever asks during a look waits for one that begins afterwards: the other may not know what is wanted now."""
    looks = Looks(lambda: 0.0)
    with looks.one():
        number = looks.next
        waiting = asyncio.ensure_future(looks.until_over(number, 60))
    await asyncio.sleep(0)
    assert not waiting.done()
    with looks.one():
        pass
    assert await waiting


async def test_a_look_that_fails_is_over_too() -> None:
    """Nobody waits for ever because of an error of ours."""
    looks = Looks(lambda: 0.0)
    with pytest.raises(ValueError, match="ours"), looks.one():
        raise ValueError("ours")
    assert await looks.until_over(1, 0)


async def test_a_wait_ends_with_its_time() -> None:
    """It tells that the look is not over."""
    looks = Looks(lambda: 0.0)
    with looks.one():
        assert not await looks.until_over(1, 0)


async def test_times_are_those_of_the_clock() -> None:
    """How long the look under way and the last one take, and how long ago that was."""
    now = [10.0]
    looks = Looks(lambda: now[0])
    assert (looks.seconds, looks.seconds_since) == (0.0, float("inf"))
    with looks.one():
        now[0] = 13.0
        assert looks.seconds == 3.0
    now[0] = 17.0
    assert (looks.seconds, looks.last_seconds, looks.seconds_since) == (0.0, 3.0, 4.0)


async def test_one_that_is_wanted_begins_without_a_pause_and_once() -> None:
    """A wish that comes before a look is met by it; one that comes during it is met by the next."""
    looks = Looks(lambda: 0.0)
    looks.want_one()
    with looks.one():
        paused = asyncio.ensure_future(looks.until_wanted())
        await asyncio.sleep(0)
        assert not paused.done()
        looks.want_one()
    await paused
