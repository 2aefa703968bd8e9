"""Keys to look at: events only mark them, one round a key runs at a time, failures come again later.

A key that is marked while its round runs gets another round afterwards, so that no change is missed; a key that is
marked often has rounds at least ``spacing_seconds`` apart.

Marks are for what happened. What time alone brings about is no mark, since a round that comes earlier would use it up:
each round says when its key is to be looked at again although nothing happens, from the state that it found.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Hashable
from itertools import count
from typing import Final, Generic, NoReturn, TypeVar

from cta_group_core.backoff import wait_seconds
from cta_group_operator.errors import ApiError, Conflict, LeadershipLost
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock

_log = EventLog(__name__)

_RETRY_SECONDS: Final = (0.2, 30.0)
Key = TypeVar("Key", bound=Hashable)


class WorkQueue(Generic[Key]):
    """Runs rounds of work for keys that were marked, at most ``concurrency`` at once."""

    def __init__(
        self,
        kind: str,
        work: Callable[[Key], Awaitable[float | None]],
        *,
        clock: Clock,
        metrics: Metrics,
        concurrency: int = 8,
        spacing_seconds: float = 0.0,
        settle_seconds: float = 0.0,
    ) -> None:
        """``work``: one round; returns the seconds after which time alone calls for another, None for never.

        ``settle_seconds``: how long :meth:`mark_soon` waits.
        """
        self._kind = kind
        self._work = work
        self._clock = clock
        self._metrics = metrics
        self._concurrency = concurrency
        self._spacing_seconds = spacing_seconds
        self._settle_seconds = settle_seconds
        self._due: dict[Key, float] = {}
        self._next: list[tuple[float, int, Key]] = []
        """A heap of appointments; those that are not in ``_due`` any more are passed over."""
        self._numbers = count()
        self._started: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._running: dict[Key, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._takes_marks = True
        self._progress = clock.monotonic()
        """When a round ended last, or there was nothing to do."""

    def rest(self) -> None:
        """Forget every appointment and take no mark until :meth:`wake`: where nobody works they would pile up."""
        self._takes_marks = False
        self._due.clear()
        self._next.clear()
        self._failures.clear()
        self._started.clear()

    def wake(self) -> None:
        """Take marks again."""
        self._takes_marks = True
        self._progress = self._clock.monotonic()

    def mark(self, key: Key) -> None:
        """Have a round for ``key`` that sees what is so now."""
        self._appoint(key, 0.0)

    def mark_soon(self, key: Key) -> None:
        """Have it a moment later, when what belongs to the change has arrived too. A round that comes first will do."""
        self._appoint(key, self._settle_seconds)

    def _appoint(self, key: Key, after_seconds: float) -> None:
        """Have a round not before ``after_seconds``; an earlier appointment stays, and its round makes the next."""
        if not self._takes_marks:
            return
        now = self._clock.monotonic()
        due = max(now + after_seconds, self._started.get(key, -self._spacing_seconds) + self._spacing_seconds)
        known = self._due.get(key)
        if known is None or known > due:
            self._due[key] = due
            self._stand_in_line(key)
            self._changed.set()
        elif known <= now:
            self._changed.set()  # it is over by this clock, which may run ahead of the one that the queue sleeps by

    def _stand_in_line(self, key: Key) -> None:
        heapq.heappush(self._next, (self._due[key], next(self._numbers), key))

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is due now and nothing runs."""
        now = self._clock.monotonic()
        return not self._running and all(due > now for due in self._due.values())

    @property
    def depth(self) -> int:
        """How many keys are due now or worked on."""
        now = self._clock.monotonic()
        return len(self._running.keys() | {key for key, due in self._due.items() if due <= now})

    def oldest_seconds(self) -> float:
        """Return for how long the oldest of those keys is due or worked on; 0 when there is none."""
        now = self._clock.monotonic()
        waiting = [due for due in self._due.values() if due <= now]
        return now - min([*waiting, *(self._started.get(key, now) for key in self._running)], default=now)

    def stalled_seconds(self) -> float:
        """Return for how long there was something to do and no round ended."""
        return min(self.oldest_seconds(), self._clock.monotonic() - self._progress)

    async def run(self) -> NoReturn:
        """Work for ever. Cancelling it cancels the rounds that run; what they were for stays marked.

        Raises LeadershipLost, in a group, when a round does: no key can be worked on any more.
        """
        try:
            async with asyncio.TaskGroup() as rounds:
                while True:
                    self._changed.clear()
                    next_due = self._start_due(rounds)
                    try:
                        async with asyncio.timeout(next_due):
                            await self._changed.wait()
                    except TimeoutError:
                        continue
        finally:
            self._take_back()

    def _take_back(self) -> None:
        """Mark what was to run and did not even begin: a group that ends cancels such tasks without running them."""
        for key in self._running:
            self.mark(key)
        self._running.clear()
        self._next.clear()
        for key in self._due:
            self._stand_in_line(key)

    def _start_due(self, rounds: asyncio.TaskGroup) -> float | None:
        """Start what is due and may run; return seconds until the next appointment, None when nothing waits for one."""
        now = self._clock.monotonic()
        while self._next and len(self._running) < self._concurrency:
            due, _, key = self._next[0]
            if self._due.get(key) == due and due > now:
                return due - now
            heapq.heappop(self._next)
            if self._due.get(key) == due and key not in self._running:
                del self._due[key]
                self._started[key] = now
                self._running[key] = rounds.create_task(self._round(key))
        return None

    async def _round(self, key: Key) -> None:
        try:
            with self._metrics.reconcile_seconds.labels(kind=self._kind).time():
                again_seconds = await self._work(key)
        except (LeadershipLost, asyncio.CancelledError):
            self.mark(key)
            raise
        except Conflict as newer:
            _log.debug("decided_on_old_state", kind=self._kind, key=key, cause=newer)
            self._again(key)
        except ApiError as failed:
            _log.warning("reconcile_failed", kind=self._kind, key=key, cause=failed)
            self._again(key)
        except Exception as broken:  # noqa: BLE001 - the outermost loop: one key that breaks must not stop the others
            _log.error("reconcile_broke", kind=self._kind, key=key, cause=broken)
            self._again(key)
        else:
            self._failures.pop(key, None)
            if again_seconds is not None:
                self._appoint(key, again_seconds)
        finally:
            self._progress = self._clock.monotonic()
            self._running.pop(key, None)
            if key in self._due:
                self._stand_in_line(key)  # its turn may have come meanwhile, and was passed over
            self._forget_start_of(key)
            self._changed.set()

    def _again(self, key: Key) -> None:
        self._metrics.reconcile_errors.labels(kind=self._kind).inc()
        count = self._failures[key] = self._failures.get(key, 0) + 1
        self._appoint(key, wait_seconds(count, *_RETRY_SECONDS))

    def _forget_start_of(self, key: Key) -> None:
        """Keep the start of a round only as long as it can delay another, so that deleted objects leave nothing."""
        if key not in self._due and not self._spacing_seconds:
            self._started.pop(key, None)
        if len(self._started) > 10_000:  # noqa: PLR2004 - a bound, not a limit anyone meets
            oldest = self._clock.monotonic() - self._spacing_seconds
            self._started = {key: start for key, start in self._started.items() if start > oldest}
