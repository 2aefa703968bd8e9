"""Keeps the daemon of one GPU: there when it is demanded, with the right limits, and never ended under a client.

The keeper looks again and again at what is true and does the next step towards what is wanted, so it does not matter
who started the daemon, or what happened while nobody looked.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from cta_group_core.ids import GpuUuid
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.mps.backoff import Backoff
from cta_group_plugin.mps.control import MpsControlClient, NoDaemon, ServerStatus
from cta_group_plugin.mps.daemon import DaemonProcess
from cta_group_plugin.mps.limits import Ceiling, apply_limits
from cta_group_plugin.mps.metrics import MpsMetrics
from cta_group_plugin.mps.timing import Timing
from cta_group_plugin.ports import MpsDemand, MpsState

_LOG = EventLog(__name__)
_REAP_POLL_SECONDS = 0.02


class DaemonKeeper:
    """The supervisor of one GPU's daemon. ``start_daemon`` starts a process that does not answer yet."""

    def __init__(
        self,
        gpu: GpuUuid,
        *,
        control: MpsControlClient,
        start_daemon: Callable[[], DaemonProcess],
        timing: Timing,
        metrics: MpsMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gpu = gpu
        self._control = control
        self._start_daemon = start_daemon
        self._timing = timing
        self._metrics = metrics
        self._clock = clock
        self._demand: MpsDemand | None = None
        self._unwanted_since = clock()
        self._process: DaemonProcess | None = None
        self._started_at = 0.0
        self._answers = False
        self._last_end = ""
        self._backoff = Backoff(timing.backoff_first_seconds, timing.backoff_cap_seconds, timing.backoff_calm_seconds)
        self._verified: tuple[MpsDemand, Sequence[int], Ceiling, float] | None = None
        self._state = MpsState(ready=False, reason="not looked at yet")
        self._one_at_a_time = asyncio.Lock()
        metrics.declare(gpu)

    @property
    def is_idle(self) -> bool:
        """Tell whether there is neither a demand nor a daemon, so that nobody needs to look any more."""
        return self._demand is None and not self._answers and self._process is None

    def want(self, demand: MpsDemand | None) -> None:
        """Change what is wanted; the next look acts on it."""
        if demand is None and self._demand is not None:
            self._unwanted_since = self._clock()
        self._demand = demand

    async def settle(self, demand: MpsDemand) -> MpsState:
        """Want ``demand`` and return the state once it is met, known not to be met soon, or the time is over."""
        self.want(demand)
        deadline = self._clock() + self._timing.sync_seconds
        while True:
            state = await self.look()
            if state.ready or not self._is_starting() or self._clock() >= deadline:
                return state
            await asyncio.sleep(self._timing.starting_poll_seconds)

    async def keep(self) -> None:
        """Look for ever."""
        while True:
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - a fault of ours on one GPU must not leave it unwatched
                _LOG.error("mps_look_failed", gpu=self._gpu, cause=error)
            starting = self._is_starting()
            await asyncio.sleep(self._timing.starting_poll_seconds if starting else self._timing.poll_seconds)

    async def look(self) -> MpsState:
        """Look at the daemon, do the next step, and return the state."""
        async with self._one_at_a_time:
            try:
                state = await self._next_step()
            except MpsUnavailable as error:
                state = MpsState(ready=False, reason=str(error))
            if (state.ready, state.reason) != (self._state.ready, self._state.reason):
                _LOG.info("mps_state_changed", gpu=self._gpu, ready=state.ready, reason=state.reason)
            self._state = state
            self._metrics.observe_state(self._gpu, state)
            return state

    async def leave(self) -> None:
        """End a daemon without clients; leave one that has clients, or that does not say, as it is."""
        async with self._one_at_a_time:
            try:
                servers = await self._control.servers()
                if clients := await self._clients(servers):
                    _LOG.info("mps_daemon_left_running", gpu=self._gpu, clients=len(clients))
                else:
                    await self._quit()
            except NoDaemon:
                if self._process is not None:
                    self._process.terminate()
            except MpsUnavailable as error:
                _LOG.warning("mps_daemon_left_running", gpu=self._gpu, reason=error)

    async def _next_step(self) -> MpsState:
        try:
            servers = await self._control.servers()
        except NoDaemon as nobody:
            return self._without_answer(nobody)
        self._answers = True
        for server in servers:
            if await self._control.server_status(server) is ServerStatus.FAULT:
                return MpsState(ready=False, reason=f"GPU {self._gpu}: MPS server {server} is in state FAULT")
        if self._demand is None:
            return await self._end_when_idle(servers)
        ceiling = await self._with_limits(self._demand, servers)
        return MpsState(ready=True, reason="", sm_percent=ceiling.sm_percent, memory_mib=ceiling.memory_mib)

    async def _with_limits(self, demand: MpsDemand, servers: Sequence[int]) -> Ceiling:
        """Make the limits right. What was right a moment ago is not read again, since each question costs a process."""
        now = self._clock()
        if self._verified is not None:
            for_demand, for_servers, ceiling, at = self._verified
            if (for_demand, for_servers) == (demand, servers) and now - at < self._timing.verify_seconds:
                return ceiling
        self._verified = None
        ceiling = await apply_limits(self._control, demand, servers)
        self._verified = (demand, servers, ceiling, now)
        return ceiling

    async def _end_when_idle(self, servers: Sequence[int]) -> MpsState:
        unwanted = MpsState(ready=False, reason=f"GPU {self._gpu}: no MPS daemon is wanted")
        if self._clock() - self._unwanted_since < self._timing.idle_seconds or await self._clients(servers):
            return unwanted
        await self._quit()
        return unwanted

    def _without_answer(self, nobody: NoDaemon) -> MpsState:
        """Decide what it means that no daemon listens, and start one when that is wanted and may be tried."""
        self._verified = None
        now = self._clock()
        if self._process is not None:
            if (end := self._process.ended()) is None:
                return MpsState(ready=False, reason=self._not_listening(now, nobody))
            self._note_end(end, now)
        elif self._answers:
            self._note_end("the daemon that was found running has ended", now)
        if self._demand is None:
            return MpsState(ready=False, reason=f"GPU {self._gpu}: no MPS daemon is wanted")
        if self._backoff.is_waiting(now):
            return MpsState(ready=False, reason=f"GPU {self._gpu}: {self._last_end}; {self._backoff.describe()}")
        self._start(now)
        return MpsState(ready=False, reason=f"GPU {self._gpu}: its MPS daemon is starting")

    def _start(self, now: float) -> None:
        self._backoff.started(now)
        try:
            self._process = self._start_daemon()
        except MpsUnavailable as error:
            self._last_end = str(error)
            self._backoff.failed(now)
            raise
        self._started_at = now
        self._metrics.observe_start(self._gpu)
        _LOG.info("mps_daemon_started", gpu=self._gpu, pid=self._process.pid)

    def _note_end(self, end: str, now: float) -> None:
        """Note an end that nobody asked for; clients that the daemon had are dead with it."""
        self._last_end = end
        self._process = None
        self._answers = False
        self._backoff.failed(now)
        self._metrics.observe_end(self._gpu)
        _LOG.warning("mps_daemon_ended", gpu=self._gpu, how=end)

    def _not_listening(self, now: float, nobody: NoDaemon) -> str:
        limit = self._timing.start_seconds
        if now - self._started_at < limit:
            return f"GPU {self._gpu}: its MPS daemon is starting"
        return f"GPU {self._gpu}: its MPS daemon was started more than {limit:g} s ago and does not listen ({nobody})"

    def _is_starting(self) -> bool:
        recent = self._clock() - self._started_at < self._timing.start_seconds
        return self._process is not None and not self._answers and recent

    async def _clients(self, servers: Sequence[int]) -> list[int]:
        return [client for server in servers for client in await self._control.clients(server)]

    async def _quit(self) -> None:
        await self._control.quit()
        self._answers = False
        process, self._process = self._process, None
        while process is not None and process.ended() is None:  # noqa: ASYNC110 - the kernel tells of it by waitpid
            await asyncio.sleep(_REAP_POLL_SECONDS)
        _LOG.info("mps_daemon_ended", gpu=self._gpu, how="asked to, without clients")
