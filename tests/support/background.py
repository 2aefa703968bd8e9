"""Tasks of a test: started, waited for, and ended with it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_plugin.state import NodeState, NodeView


@asynccontextmanager
async def in_background(part: Callable[[], Awaitable[object]]) -> AsyncIterator[asyncio.Task[object]]:
    """Run ``part`` while the test does something else. An error that it ends with fails the test."""
    task = asyncio.ensure_future(_run(part))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (failure := task.exception()):
            raise failure


async def _run(part: Callable[[], Awaitable[object]]) -> object:
    return await part()


async def until_view(
    state: NodeState, condition: Callable[[NodeView], object], *, deadline_seconds: float = PATIENCE_SECONDS
) -> NodeView:
    """Wait until the view satisfies ``condition`` and return it; raises TimeoutError."""
    view = state.view
    async with asyncio.timeout(deadline_seconds):
        while not condition(view):
            view = await state.change_after(view)
    return view
