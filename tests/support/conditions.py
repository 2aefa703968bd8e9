"""Waiting in an asynchronous test for what nobody tells, with a deadline."""

import asyncio
from collections.abc import Callable

from cluster_harness.waiting import PATIENCE_SECONDS


async def until(
    is_true: Callable[[], object], what: str = "what is waited for", seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait until a condition holds; raises TimeoutError, which names ``what``, after the deadline."""
    try:
        async with asyncio.timeout(seconds):
            while not is_true():  # noqa: ASYNC110 - the condition has no event
                await asyncio.sleep(0.005)
    except TimeoutError as late:
        raise TimeoutError(f"not within {seconds:g} s: {what}") from late
