"""A task that is cancelled ends, whatever arrives at that moment."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cta_group_plugin import calls
from cta_group_plugin.calls import cancellable

_AWAITED = re.compile(r"await .*\b_?(([Ss]tub|[A-Z]\w+Stub\(channel\))\.[A-Z]|server\.stop\()")


async def lately() -> str:
    """Answer as grpc.aio does where a call is cancelled that has its answer."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "the answer"
    return ""


async def failing_lately() -> str:
    """Fail as grpc.aio does in that case where the answer is an error."""
    await lately()
    raise ConnectionError


@pytest.mark.parametrize("call", [lately, failing_lately])
async def test_a_cancellation_is_not_lost_with_the_answer(call: Callable[[], Awaitable[str]]) -> None:
    """Else whoever asks a task to end would wait for it for ever."""
    task = asyncio.ensure_future(cancellable(call()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_deadline_is_not_lost_with_the_answer() -> None:
    """A deadline cancels too, and is told as one."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):  # it is to pass
            await cancellable(lately())


async def test_a_task_that_is_being_cancelled_may_still_ask() -> None:
    """What it does at its end is not cut short by the cancellation that began it."""

    async def ends() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await cancellable(asyncio.sleep(0, "its last answer"))
        return ""

    task = asyncio.ensure_future(ends())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "its last answer"


def test_whatever_grpc_may_lose_is_awaited_so() -> None:
    """Each call of the plugin and the supervisor, and each end of a server of theirs."""
    sources = Path(calls.__file__).parent.rglob("*.py")
    awaited = [line for path in sources for line in path.read_text().splitlines() if _AWAITED.search(line)]
    assert awaited
    assert [line for line in awaited if "cancellable(" not in line] == []
