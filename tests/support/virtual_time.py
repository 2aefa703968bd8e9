"""An event loop on which waiting takes no time: ten minutes without an answer are over in a moment."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Its clock jumps to the next timer whenever there is nothing else to do. Not for what waits for threads."""

    def __init__(self) -> None:
        self._skipped_seconds = 0.0
        super().__init__(_Skipping(self))

    def time(self) -> float:
        """Return seconds of this loop's clock."""
        return super().time() + self._skipped_seconds

    def skip(self, seconds: float) -> None:
        """Let time pass at once."""
        self._skipped_seconds += seconds


class _Skipping(selectors.DefaultSelector):
    """Waits for nothing but files that are ready."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now; when nothing is, the time is over."""
        ready = super().select(timeout if timeout is None else 0)
        if not ready and timeout:
            self._loop.skip(timeout)
        return ready


def run_in_virtual_time(coroutine: Coroutine[Any, Any, Answer]) -> Answer:
    """Run a coroutine to its end and return its answer."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)
