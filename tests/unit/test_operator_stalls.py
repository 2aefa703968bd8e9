"""A part that stands still is noticed and named; one that fails again and again, or has nothing to do, is not."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from conditions import until
from cta_group_operator.adapters.probes import serve_probes
from cta_group_operator.errors import ApiUnavailable
from cta_group_operator.metrics import Metrics
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.stalls import LEASE_SECONDS, QUEUE_SECONDS, Part, Stalls
from http_probe import fetch_status, free_address
from operator_world import FakeClock


def a_queue(clock: FakeClock, hold: asyncio.Event, failures: list[Exception] | None = None) -> WorkQueue[str]:
    """Return a queue whose rounds wait for ``hold``, or fail."""

    async def work(_: str) -> None:
        if failures:
            raise failures.pop()
        await hold.wait()

    return WorkQueue("quota", work, clock=clock, metrics=Metrics("test"), concurrency=1)


@contextmanager
def running(queue: WorkQueue[str]) -> Iterator[None]:
    """Run a queue until the block ends."""
    task = asyncio.ensure_future(queue.run())
    try:
        yield
    finally:
        task.cancel()


async def test_a_round_that_never_ends_is_a_stall() -> None:
    """A queue whose only round hangs stands still; depth and age tell how much waits; the end of the round heals it."""
    clock, hold = FakeClock(), asyncio.Event()
    queue = a_queue(clock, hold)
    stalls = Stalls([], lambda: {"quotas": queue.stalled_seconds()})
    with running(queue):
        queue.mark("first")
        await until(lambda: queue.depth == 1 and not queue.is_idle, "the round to begin")
        queue.mark("second")
        clock.now += QUEUE_SECONDS + 1
        assert (queue.depth, queue.oldest_seconds()) == (2, QUEUE_SECONDS + 1)
        assert stalls.words() == "queue quotas stands still for 121 s (at most 120 s)"
        hold.set()
        await until(lambda: queue.depth == 0, "both rounds to end")
        assert (queue.oldest_seconds(), stalls.words()) == (0, "")


async def test_a_quiet_queue_is_no_stall() -> None:
    """Hours without work, and then a key: only its own age counts."""
    clock, hold = FakeClock(), asyncio.Event()
    queue = a_queue(clock, hold)
    with running(queue):
        clock.now += 10_000
        assert queue.stalled_seconds() == 0
        queue.mark("key")
        clock.now += 3
        assert queue.stalled_seconds() == 3


async def test_rounds_that_fail_are_no_stall() -> None:
    """A round that fails has ended, and the next one of its key is due later: the API server's trouble is not ours."""
    clock, hold = FakeClock(), asyncio.Event()
    queue = a_queue(clock, hold, [ApiUnavailable("away")])
    with running(queue):
        queue.mark("key")
        await until(lambda: queue.is_idle, "the round to fail")
        assert (queue.depth, queue.stalled_seconds()) == (0, 0)


async def test_a_queue_that_rests_has_nothing_to_do() -> None:
    """A replica that does not lead is not started anew for what another one does; waking begins afresh."""
    clock, hold = FakeClock(), asyncio.Event()
    queue = a_queue(clock, hold)
    queue.mark("key")
    queue.rest()
    clock.now += 10_000
    queue.wake()
    queue.mark("other")
    assert (queue.depth, queue.stalled_seconds()) == (1, 0)


async def test_liveness_fails_with_the_name_of_the_part() -> None:
    """The probe says ok while every part acts, and which one does not otherwise."""
    idle = [0.0]
    stalls = Stalls([Part("the lease", lambda: idle[0], LEASE_SECONDS)], dict)
    address = free_address()
    served = serve_probes(address, Metrics("test").registry, not_ready=lambda: "", not_alive=stalls.words)
    async with served:
        assert await asyncio.to_thread(fetch_status, f"http://{address}/healthz") == (200, "ok\n")
        idle[0] = LEASE_SECONDS + 5
        told = "the lease stands still for 65 s (at most 60 s)\n"
        assert await asyncio.to_thread(fetch_status, f"http://{address}/healthz") == (503, told)
        assert await asyncio.to_thread(fetch_status, f"http://{address}/readyz") == (200, "ok\n")
