"""Whatever is marked, fails or loses the lease: each mark has a round after it, and each appointment is kept."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from cta_group_operator.errors import ApiUnavailable, LeadershipLost
from cta_group_operator.metrics import Metrics
from cta_group_operator.reconcile.queue import WorkQueue
from virtual_time import VirtualClock, run_in_virtual_time

KEYS = "abc"
ROUND_SECONDS = 0.1
"""Marks come at multiples of it, so that some come at the very moment at which a round ends."""
SPACING_SECONDS = 0.5
LONGEST_SECONDS = 32.0
"""Until the last retry, and a little more."""
OUTCOMES = st.sampled_from(("done", "later", "fails", "loses"))
END_SECONDS = 300.0


@dataclass
class Story:
    """What is to happen, and what came of it. Times are in seconds of virtual time."""

    marks: list[tuple[int, str]]
    outcomes: list[str]
    owed: dict[str, float] = field(default_factory=dict)
    """By key, until when there has to be a round."""
    late: list[tuple[str, float, float]] = field(default_factory=list)
    """Key, when it was due, and when it had its round or there was none yet."""
    running: set[str] = field(default_factory=set)

    async def tell(self) -> None:
        """Mark as the story says, while the queue is run anew after each lost lease."""
        clock = VirtualClock()
        queue = WorkQueue[str](
            "quota",
            lambda key: self._round(key, clock),
            clock=clock,
            metrics=Metrics("test"),
            concurrency=2,
            spacing_seconds=SPACING_SECONDS,
        )
        leading = asyncio.ensure_future(self._lead(queue))
        for pause, key in self.marks:
            await asyncio.sleep(pause * ROUND_SECONDS)
            queue.mark(key)
            self._owe(key, clock.monotonic() + 5.0)
        await asyncio.sleep(END_SECONDS)
        assert not leading.done()
        now = clock.monotonic()
        leading.cancel()
        self.late += [(key, due, now) for key, due in self.owed.items() if due < now]
        assert not self.late
        assert queue._running == {}

    async def _lead(self, queue: WorkQueue[str]) -> None:
        while True:
            try:
                await asyncio.create_task(queue.run())
            except* LeadershipLost:
                await asyncio.sleep(0.1)

    async def _round(self, key: str, clock: VirtualClock) -> float | None:
        assert key not in self.running
        now, due = clock.monotonic(), self.owed.pop(key, None)
        if due is not None and now > due:
            self.late.append((key, due, now))
        self.running.add(key)
        try:
            await asyncio.sleep(ROUND_SECONDS)
        except asyncio.CancelledError:
            self._owe(key, now + LONGEST_SECONDS)
            raise
        finally:
            self.running.discard(key)
        outcome = self.outcomes.pop() if self.outcomes else "done"
        if outcome == "later":
            self._owe(key, clock.monotonic() + 10.0)
            return 9.0
        if outcome != "done":
            self._owe(key, clock.monotonic() + LONGEST_SECONDS)
            raise LeadershipLost("another leads") if outcome == "loses" else ApiUnavailable("away")
        return None

    def _owe(self, key: str, due: float) -> None:
        self.owed[key] = min(due, self.owed.get(key, due))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(KEYS)), min_size=1, max_size=20),
    st.lists(OUTCOMES, max_size=30),
)
def test_nothing_that_is_owed_is_forgotten(marks: list[tuple[int, str]], outcomes: list[str]) -> None:
    """Each mark, retry and appointment is followed by a round in time, whatever happens between."""
    run_in_virtual_time(Story(marks, outcomes).tell())
