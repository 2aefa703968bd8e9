"""Placement with all its queues running, for unit tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cta_group_operator.reconcile.placement import Placement


@asynccontextmanager
async def running(placement: Placement) -> AsyncIterator[None]:
    """Run all of it until the block ends."""
    placement.resume()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(queue.run()) for queue in placement.queues.values()]
        yield
        for task in tasks:
            task.cancel()
