"""A replica leads again and again, and never loses without a word the task that does so."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_operator.errors import LeadershipLost, TaskEnded
from cta_group_operator.leading import Loop, lead, never_ending


class Enough(Exception):
    """Ends a test's leading."""


class FakeLease:
    """A lease that is always free, for a number of times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.cancelling: list[int] = []
        """How often the leading task counted as being cancelled, at each acquisition."""

    async def acquire(self) -> None:
        """Lead, unless it was often enough; then it takes too long, as when the API server hangs."""
        task = asyncio.current_task()
        assert task is not None
        self.cancelling.append(task.cancelling())
        self.left -= 1
        if self.left < 0:
            try:
                async with asyncio.timeout(0.01):  # never: it is to pass
                    await asyncio.Event().wait()
            except TimeoutError:
                raise Enough from None


class FakeWork:
    """Counts beginnings and ends."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begin(self) -> None:
        """Remember."""
        self.told.append("begin")

    def end(self) -> None:
        """Remember."""
        self.told.append("end")


async def losing() -> None:
    """Notice that another leads."""
    await asyncio.sleep(0)
    raise LeadershipLost("not renewed in time")


async def working() -> None:
    """Work for ever."""
    await asyncio.Event().wait()


async def breaking() -> None:
    """Break."""
    raise RuntimeError("a fault")


async def ending() -> None:
    """End, by a fault."""


def loops(**named: Loop) -> dict[str, Loop]:
    """Return what a leader runs."""
    return {"work": working, **named}


async def test_a_lost_lease_leaves_nothing_behind() -> None:
    """After each loss all is ended and begun afresh, and the leading task is not taken for one that is cancelled.

    If it were, the first call of the lease that takes too long would end it without a word (Python 3.11.2).
    """
    lease, work = FakeLease(3), FakeWork()
    with pytest.raises(Enough):
        await asyncio.create_task(lead(lease, work, lambda: loops(lease=losing)))
    assert work.told == ["begin", "end"] * 3
    assert lease.cancelling == [0] * 4


@pytest.mark.parametrize(("loop", "error"), [(breaking, RuntimeError), (ending, TaskEnded)])
async def test_other_ends_are_raised(loop: Loop, error: type[Exception]) -> None:
    """What is no loss of the lease ends the process: it is raised, after the work was ended."""
    work = FakeWork()
    with pytest.raises(ExceptionGroup) as ended:
        await lead(FakeLease(1), work, lambda: loops(other=loop))
    assert ended.group_contains(error)
    assert work.told == ["begin", "end"]


async def test_being_stopped_ends_what_is_led() -> None:
    """A process that stops cancels its leading task, and with it everything that a leader runs."""
    work, begun = FakeWork(), asyncio.Event()
    ended: list[str] = []

    async def until_cancelled() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("loop")

    leading = asyncio.create_task(lead(FakeLease(1), work, lambda: loops(one=until_cancelled)))
    await begun.wait()
    leading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leading
    assert ended == ["loop"]
    assert work.told == ["begin", "end"]


async def test_a_task_that_was_cancelled_by_nobody_is_told() -> None:
    """A group of tasks takes a cancelled one for one that ended well; a task that never ends is not to be lost so."""

    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def group_of(work: Coroutine[Any, Any, Any]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(never_ending("lead", work))
            group.create_task(working())

    with pytest.raises(ExceptionGroup) as ended:
        await asyncio.wait_for(group_of(cancelled()), PATIENCE_SECONDS)
    assert ended.group_contains(TaskEnded, match="'lead' was cancelled, which nobody asked for")
