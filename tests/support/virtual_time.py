"""An event loop whose clock jumps: what waits for hours waits for nothing, in the same order each time.

Only for code whose edges are all fakes: a socket would have no time to answer in. Calls for a thread are made at once.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

Answer = TypeVar("Answer")
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_THREAD_SECONDS = 60.0
"""A loop that is closed waits for a thread that ends its executor."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits for a time: the clock goes to where the wait would have ended."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            if not (woken := super().select(_THREAD_SECONDS)):
                raise RuntimeError("everything waits for something that nothing here will bring about")
            return woken
        self.now += max(timeout, 0.0)
        return super().select(0)


class _AtOnce(ThreadPoolExecutor):
    """Does what is meant for a thread right away."""

    def submit(self, fn: Callable[..., Answer], /, *args: Any, **kwargs: Any) -> "Future[Answer]":
        done: Future[Answer] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - every error belongs to whoever asked
            done.set_exception(error)
        return done


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time, which begins at 0."""

    def __init__(self) -> None:
        self._selector_of_time = _JumpingSelector()
        super().__init__(self._selector_of_time)
        self.set_default_executor(_AtOnce())

    def time(self) -> float:
        """Return seconds of virtual time."""
        return self._selector_of_time.now


class VirtualClock:
    """The operator's clock in virtual time: what a loop that runs says, and the time of day by that."""

    def monotonic(self) -> float:
        """Return seconds of virtual time."""
        return asyncio.get_running_loop().time()

    def utc_text(self) -> str:
        """Return the moment, when virtual time began with the year 2026."""
        return (_BEGINNING + timedelta(seconds=self.monotonic())).strftime("%Y-%m-%dT%H:%M:%SZ")


def run_in_virtual_time(main: Coroutine[Any, Any, Answer]) -> Answer:
    """Run a coroutine to its end, however long it sleeps."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
