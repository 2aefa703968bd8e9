"""What is awaited of grpc.aio, so that it ends with the task that awaits it."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def cancellable(awaited: Awaitable[T]) -> T:
    """Await a call, or the end of a server; return what it returns, or raise what it raises.

    grpc.aio loses the cancellation of a task that comes at the moment at which what it awaits is done: the call hands
    its answer out, the server has ended, and the task goes on. Then this raises CancelledError.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        return await awaited
    finally:
        if task and task.cancelling() > before:
            raise asyncio.CancelledError
