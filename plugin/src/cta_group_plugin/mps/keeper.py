"""Keeps the daemon of one GPU: looks at it again and again, and tells how it is without waiting for one that hangs.

Whoever asks gets what the next look finds. A GPU of which a look hangs, or that was found wrong after a long look (its
daemon silent, the driver without an answer), is told as it is known: no other GPU waits for it. That it is ready is
only told as long as a look has just found it so: a container starts on that word.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from cta_group_core.ids import GpuUuid
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.mps.looks import Looks
from cta_group_plugin.mps.metrics import MpsMetrics
from cta_group_plugin.mps.steps import DaemonSteps, KeeperParts
from cta_group_plugin.mps.timing import Timing
from cta_group_plugin.ports import MpsDemand, MpsState

_LOG = EventLog(__name__)

_TOLD_SECONDS: Final = (1, 5, 15, 60, 300, 1800)
"""A wait is told as longer than one of these, so that the words change rarely: each change is written to the API."""


class DaemonKeeper:
    """The supervisor of one GPU's daemon."""

    def __init__(
        self, parts: KeeperParts, *, timing: Timing, metrics: MpsMetrics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gpu: GpuUuid = parts.folders.gpu
        self._life = parts.life
        self._steps = DaemonSteps(parts, timing=timing, clock=clock)
        self._timing = timing
        self._metrics = metrics
        self._clock = clock
        self._looks = Looks(clock)
        self._state = MpsState(ready=False, reason=f"GPU {self._gpu}: its MPS daemon was not looked at yet")
        self._seen_for: MpsDemand | None = None
        metrics.declare(self._gpu)

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is demanded, nothing runs and nothing is to be given back: nobody needs to look."""
        return self._steps.are_over

    @property
    def state(self) -> MpsState:
        """What the last look found."""
        return self._state

    def want(self, demand: MpsDemand | None) -> None:
        """Change what is wanted; the next look acts on it."""
        self._steps.want(demand)

    async def settle(self, demand: MpsDemand) -> MpsState:
        """Want ``demand`` and return the state once it is met, known not to be met soon, or the time is over."""
        self.want(demand)
        number = self._looks.next
        self._looks.want_one()
        deadline = self._clock() + self._timing.sync_seconds
        while not self._holds_up and await self._looks.until_over(number, deadline - self._clock()):
            if self._state.ready or not self._life.is_starting(self._clock()):
                return self._state
            number = self._looks.next
        return self._meanwhile(demand)

    async def first_look(self) -> None:
        """Return when it was looked at once, or when that takes long."""
        await self._looks.until_over(1, self._timing.sync_seconds)

    async def keep(self) -> None:
        """Look for ever."""
        while True:
            try:
                await self._look()
                await self._pause()
            except Exception as error:  # noqa: BLE001 - a fault of ours on one GPU must not leave it unwatched
                _LOG.error("mps_look_failed", gpu=self._gpu, cause=error)
                self._become(_not_ready(self._gpu, f"the MPS supervisor failed: {error!r}"))
                await asyncio.sleep(self._timing.poll_seconds)

    async def leave(self) -> None:
        """End a daemon without clients and restore the compute mode; leave one that has clients, or may have, alone."""
        try:
            async with asyncio.timeout(self._timing.leave_seconds):
                await self._steps.leave()
        except TimeoutError:
            _LOG.warning("mps_daemon_left_running", gpu=self._gpu, reason="it or the driver took too long to answer")
        except (MpsUnavailable, OSError) as error:
            _LOG.warning("mps_daemon_left_running", gpu=self._gpu, reason=error)

    async def _look(self) -> None:
        """Look at the daemon and do the next step."""
        with self._looks.one():
            demand = self._steps.demand
            try:
                state = await self._steps.take()
            except MpsUnavailable as error:
                state = MpsState(ready=False, reason=str(error))
            except OSError as error:  # which names the path
                state = _not_ready(self._gpu, f"what belongs to its MPS daemon cannot be used: {error}")
            self._seen_for = demand
            self._become(state)

    async def _pause(self) -> None:
        """Wait until the next look is due, somebody wants one, or the daemon ends."""
        starting = self._life.is_starting(self._clock())
        seconds = self._timing.starting_poll_seconds if starting else self._timing.poll_seconds
        pause = asyncio.ensure_future(self._life.pause(seconds))
        wanted = asyncio.ensure_future(self._looks.until_wanted())
        try:
            done, _ = await asyncio.wait([pause, wanted], return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            wanted.cancel()
            await asyncio.wait([pause, wanted])
        for each in done:
            each.result()

    def _become(self, state: MpsState) -> None:
        state = self._with_clients(state)
        if (state.ready, state.reason) != (self._state.ready, self._state.reason):
            _LOG.info("mps_state_changed", gpu=self._gpu, ready=state.ready, reason=state.reason)
        self._state = state
        self._metrics.observe_state(self._gpu, state)

    @property
    def _holds_up(self) -> bool:
        """Tell whether everybody would wait for a look that probably tells nothing new."""
        was_slow = self._looks.last_seconds > self._timing.slow_seconds
        return self._looks.seconds > self._timing.sync_seconds or (was_slow and not self._state.ready)

    def _meanwhile(self, demand: MpsDemand) -> MpsState:
        """Return what is known while nobody waits for the look that would tell more."""
        seconds = self._looks.seconds
        is_old = self._state.ready and self._looks.seconds_since > self._timing.sync_seconds
        if self._state.trouble or (self._seen_for == demand and not is_old):
            return self._state
        longer_than = max((step for step in _TOLD_SECONDS if step <= seconds), default=0)
        if not longer_than:
            return self._with_clients(_not_ready(self._gpu, "its MPS daemon is being looked at"))
        told = f"its MPS daemon or the driver has not answered for more than {longer_than} s"
        return self._with_clients(_not_ready(self._gpu, told))

    def _with_clients(self, state: MpsState) -> MpsState:
        return replace(state, client_pids=self._life.clients.pids, loss=self._life.loss)


def _not_ready(gpu: GpuUuid, why: str) -> MpsState:
    return MpsState(ready=False, reason=f"GPU {gpu}: {why}")
