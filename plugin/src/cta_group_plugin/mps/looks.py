"""The looks at one daemon, for those who wait for one: which is under way, since when, and which are over."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Looks:
    """Looks are made one after the other and numbered from 1. Times are seconds of ``clock``."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun = 0
        self._over = 0
        self._began_at = 0.0
        self._one_is_over = asyncio.Event()
        self._one_is_wanted = asyncio.Event()
        self._ended_at = float("-inf")
        self.last_seconds = 0.0
        """How long the last one that is over took."""

    @property
    def next(self) -> int:
        """The number of the first look that has not begun."""
        return self._begun + 1

    @property
    def seconds(self) -> float:
        """How long the one that is under way has taken until now; 0 when none is."""
        return self._clock() - self._began_at if self._begun > self._over else 0.0

    @property
    def seconds_since(self) -> float:
        """How long ago the last one ended; infinite when none has."""
        return self._clock() - self._ended_at

    @contextmanager
    def one(self) -> Iterator[None]:
        """Be a look for as long as the block lasts."""
        self._one_is_wanted.clear()
        self._begun += 1
        self._began_at = self._clock()
        try:
            yield
        finally:
            self.last_seconds = self.seconds
            self._over = self._begun
            self._ended_at = self._clock()
            over, self._one_is_over = self._one_is_over, asyncio.Event()
            over.set()

    def want_one(self) -> None:
        """Let the next one begin without a pause."""
        self._one_is_wanted.set()

    async def until_wanted(self) -> None:
        """Return when somebody wants one that has not begun."""
        await self._one_is_wanted.wait()

    async def until_over(self, number: int, seconds: float) -> bool:
        """Wait for the end of a look, for ``seconds`` at most; tell whether it is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._over < number:
                    await self._one_is_over.wait()
        return self._over >= number
