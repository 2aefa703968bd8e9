"""The work queue: one round a key at a time, nothing missed, failures again later without holding up others."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import pairwise

import pytest

from cluster_harness.waiting import PATIENCE_SECONDS
from conditions import until
from cta_group_operator.clock import SystemClock
from cta_group_operator.errors import ApiUnavailable, LeadershipLost
from cta_group_operator.metrics import Metrics
from cta_group_operator.reconcile.queue import WorkQueue
from operator_world import FakeClock
from virtual_time import VirtualClock, run_in_virtual_time


async def run_until(queue: WorkQueue[str], done: asyncio.Event) -> None:
    """Run a queue until ``done`` is set; TimeoutError when it never is."""
    task = asyncio.ensure_future(queue.run())
    try:
        await asyncio.wait_for(done.wait(), PATIENCE_SECONDS)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def a_queue(
    work: Callable[[str], Awaitable[None]], metrics: Metrics | None = None, **settings: float
) -> WorkQueue[str]:
    """Return a queue with the system's clock."""
    concurrency = int(settings.pop("concurrency", 8))
    return WorkQueue(
        "quota", work, clock=SystemClock(), metrics=metrics or Metrics("test"), concurrency=concurrency, **settings
    )


async def test_a_mark_during_a_round_gives_another_round() -> None:
    """What changes while a key is looked at is looked at again, and never twice at once."""
    done, rounds, running = asyncio.Event(), [0], [0]

    async def work(key: str) -> None:
        assert running[0] == 0
        running[0] += 1
        rounds[0] += 1
        if rounds[0] == 1:
            queue.mark(key)
            queue.mark(key)
            await asyncio.sleep(0)
        else:
            done.set()
        running[0] -= 1

    queue = a_queue(work)
    queue.mark("a")
    await run_until(queue, done)
    assert rounds[0] == 2


async def test_many_marks_are_one_round() -> None:
    """Marks before a round starts are one round."""
    done, seen = asyncio.Event(), list[str]()

    async def work(key: str) -> None:
        seen.append(key)
        if key == "last":
            done.set()

    queue = a_queue(work, concurrency=1)
    for _ in range(5):
        queue.mark("a")
    queue.mark("last")
    await run_until(queue, done)
    assert seen == ["a", "last"]
    assert queue.is_idle


async def test_failures_come_again_and_are_counted() -> None:
    """A round that fails, by an answer of the API or by a fault of ours, is repeated; other keys go on meanwhile."""
    done, metrics = asyncio.Event(), Metrics("test")
    failures: list[Exception] = [ApiUnavailable("away"), RuntimeError("a fault")]
    others = list[str]()

    async def work(key: str) -> None:
        if key == "other":
            others.append(key)
        elif failures:
            raise failures.pop(0)
        else:
            done.set()

    queue = a_queue(work, metrics)
    queue.mark("broken")
    queue.mark("other")
    await run_until(queue, done)
    assert others == ["other"]
    assert metrics.registry.get_sample_value("cta_group_reconcile_errors_total", {"kind": "quota"}) == 2
    assert metrics.registry.get_sample_value("cta_group_reconcile_seconds_count", {"kind": "quota"}) == 4


async def test_at_most_so_many_at_once() -> None:
    """No more rounds than allowed run at the same time, and all get their turn."""
    done, running, most, seen = asyncio.Event(), [0], [0], set[str]()

    async def work(key: str) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0.001)
        running[0] -= 1
        seen.add(key)
        if len(seen) == 20:
            done.set()

    queue = a_queue(work, concurrency=3)
    for number in range(20):
        queue.mark(str(number))
    await run_until(queue, done)
    assert most[0] == 3


async def test_rounds_of_one_key_keep_their_distance() -> None:
    """A key that is marked again at once waits until its spacing is over, counted from when the queue let it start."""
    done, starts = asyncio.Event(), list[float]()

    async def work(key: str) -> None:
        starts.append(queue._started[key])
        if len(starts) == 3:
            done.set()
        queue.mark(key)

    queue = a_queue(work, spacing_seconds=0.05)
    queue.mark("a")
    await run_until(queue, done)
    assert all(later - earlier >= 0.05 for earlier, later in pairwise(starts))


async def test_what_was_for_a_round_that_is_cancelled_stays_to_be_done() -> None:
    """A round that is cut short leaves its key marked, so that nothing is forgotten when the queue runs again."""
    begun, done, rounds = asyncio.Event(), asyncio.Event(), list[str]()

    async def work(key: str) -> None:
        rounds.append(key)
        if len(rounds) == 1:
            begun.set()
            await asyncio.Event().wait()
        done.set()

    queue = a_queue(work)
    queue.mark("a")
    await run_until(queue, begun)
    await run_until(queue, done)
    assert rounds == ["a", "a"]


async def test_a_lost_lease_ends_the_queue_without_counting_a_failure() -> None:
    """A round that finds out that another replica leads ends all work at once; that is no fault of its key."""
    metrics = Metrics("test")

    async def work(_: str) -> None:
        raise LeadershipLost("another leads")

    queue = a_queue(work, metrics)
    queue.mark("a")
    with pytest.raises(ExceptionGroup) as ended:
        await queue.run()
    assert ended.group_contains(LeadershipLost)
    assert metrics.registry.get_sample_value("cta_group_reconcile_errors_total", {"kind": "quota"}) == 0


async def test_a_queue_at_rest_keeps_nothing() -> None:
    """Where nobody works marks do not pile up; after waking only what is marked then is done."""
    done, seen = asyncio.Event(), list[str]()

    async def work(key: str) -> None:
        seen.append(key)
        done.set()

    queue = a_queue(work)
    queue.mark("before")
    queue.rest()
    queue.mark("meanwhile")
    queue.wake()
    queue.mark("after")
    await run_until(queue, done)
    assert seen == ["after"]


async def test_a_round_that_had_not_begun_when_the_lease_was_lost_begins_with_the_next() -> None:
    """A group that ends cancels its newest task before the first step; such a key is not taken for one that runs."""
    loses, done, seen = asyncio.Event(), asyncio.Event(), list[str]()

    async def work(key: str) -> None:
        if key == "loses":
            await loses.wait()
            raise LeadershipLost("another leads")
        seen.append(key)
        done.set()

    queue = a_queue(work)
    queue.mark("loses")
    led = asyncio.ensure_future(queue.run())
    await until(lambda: not queue.is_idle and not queue._due, "the round that loses the lease")
    loses.set()
    queue.mark("behind")
    with pytest.raises(ExceptionGroup):
        await led
    assert (seen, queue.depth, queue._running) == ([], 2, {})
    queue.rest()
    queue.wake()
    queue.mark("behind")
    await run_until(queue, done)
    assert seen == ["behind"]


async def test_a_clock_that_runs_ahead_holds_nothing_up() -> None:
    """What happens has its round at once although the key was due long ago, and the queue sleeps by another clock."""
    clock, rounds = FakeClock(), list[float]()

    async def work(_: str) -> float:
        rounds.append(clock.now)
        return 3600.0

    queue = WorkQueue[str]("quota", work, clock=clock, metrics=Metrics("test"))
    running = asyncio.ensure_future(queue.run())
    queue.mark("a")
    await until(lambda: rounds and queue.is_idle, "the first round")
    clock.now += 7200
    queue.mark("a")
    await until(lambda: len(rounds) > 1, "another round")
    running.cancel()


def test_what_time_brings_about_is_not_used_up_by_what_happens_before() -> None:
    """A round says when its key is due though nothing happens, and so does each one that comes earlier."""

    async def rounds() -> list[float]:
        clock, starts = VirtualClock(), list[float]()

        async def work(_: str) -> float | None:
            starts.append(clock.monotonic())
            return 300.0 - clock.monotonic() if clock.monotonic() < 300 else None

        queue = WorkQueue[str]("quota", work, clock=clock, metrics=Metrics("test"), settle_seconds=2.0)
        running = asyncio.ensure_future(queue.run())
        queue.mark("a")
        await asyncio.sleep(10)
        queue.mark("a")
        await asyncio.sleep(90)
        queue.mark_soon("a")
        await asyncio.sleep(1000)
        running.cancel()
        return starts

    assert run_in_virtual_time(rounds()) == [0, 10, 102, 300]
