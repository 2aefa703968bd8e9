"""Keeps the daemon of one GPU: there when it is demanded, with the right limits, and never ended under a client.

The keeper looks again and again at what is true and does the next step towards what is wanted, so it does not matter
who started the daemon, or what happened while nobody looked.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cta_group_core.ids import GpuUuid
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.mps.backend import Ceiling, LimitBackend
from cta_group_plugin.mps.compute_mode import ModeKeeper
from cta_group_plugin.mps.control import MpsControlClient, NoDaemon, ServerStatus, SilentDaemon
from cta_group_plugin.mps.folders import MpsFolders
from cta_group_plugin.mps.life import DaemonLife
from cta_group_plugin.mps.metrics import MpsMetrics
from cta_group_plugin.mps.program import ProgramUnusable
from cta_group_plugin.mps.timing import Timing
from cta_group_plugin.mps.trouble import Trouble, TroubleWatch
from cta_group_plugin.ports import MpsDemand, MpsState

_LOG = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class KeeperParts:
    """What a keeper works with, all of one GPU."""

    folders: MpsFolders
    control: MpsControlClient
    life: DaemonLife
    mode: ModeKeeper
    backend: LimitBackend


class DaemonKeeper:
    """The supervisor of one GPU's daemon."""

    def __init__(
        self, parts: KeeperParts, *, timing: Timing, metrics: MpsMetrics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gpu: GpuUuid = parts.folders.gpu
        self._parts = parts
        self._control = parts.control
        self._life = parts.life
        self._timing = timing
        self._metrics = metrics
        self._clock = clock
        self._demand: MpsDemand | None = None
        self._unwanted_since = clock()
        self._trouble = TroubleWatch(timing.wedged_seconds, timing.fault_seconds)
        self._verified: tuple[MpsDemand, Sequence[int], Ceiling, float] | None = None
        self._state = MpsState(ready=False, reason="not looked at yet")
        self._is_restored = False
        self._one_at_a_time = asyncio.Lock()
        metrics.declare(self._gpu)

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is demanded, nothing runs and nothing is to be given back: nobody needs to look."""
        return self._demand is None and self._life.is_over and self._is_restored

    @property
    def state(self) -> MpsState:
        """What was true when somebody looked last."""
        return self._state

    def want(self, demand: MpsDemand | None) -> None:
        """Change what is wanted; the next look acts on it."""
        if demand == self._demand:
            return
        if demand is None:
            self._unwanted_since = self._clock()
        self._demand = demand
        self._is_restored = False

    async def settle(self, demand: MpsDemand) -> MpsState:
        """Want ``demand`` and return the state once it is met, known not to be met soon, or the time is over."""
        self.want(demand)
        deadline = self._clock() + self._timing.sync_seconds
        while True:
            state = await self.look()
            if state.ready or not self._life.is_starting(self._clock()) or self._clock() >= deadline:
                return state
            await asyncio.sleep(self._timing.starting_poll_seconds)

    async def keep(self) -> None:
        """Look for ever."""
        while True:
            try:
                await self.look()
            except Exception as error:  # noqa: BLE001 - a fault of ours on one GPU must not leave it unwatched
                _LOG.error("mps_look_failed", gpu=self._gpu, cause=error)
            starting = self._life.is_starting(self._clock())
            await self._life.pause(self._timing.starting_poll_seconds if starting else self._timing.poll_seconds)

    async def look(self) -> MpsState:
        """Look at the daemon, do the next step, and return the state."""
        async with self._one_at_a_time:
            try:
                state = await self._next_step()
            except MpsUnavailable as error:
                state = _not_ready(str(error))
            state = replace(state, client_pids=self._life.clients.pids, loss=self._life.loss)
            if (state.ready, state.reason) != (self._state.ready, self._state.reason):
                _LOG.info("mps_state_changed", gpu=self._gpu, ready=state.ready, reason=state.reason)
            self._state = state
            self._metrics.observe_state(self._gpu, state)
            return state

    async def leave(self) -> None:
        """End a daemon without clients and restore the compute mode; leave one that has clients, or may have, alone."""
        async with self._one_at_a_time:
            try:
                servers = await self._control.servers()
                if clients := await self._clients(servers):
                    _LOG.info("mps_daemon_left_running", gpu=self._gpu, clients=len(clients))
                else:
                    await self._quit()
                    await self._parts.mode.restore()
            except (NoDaemon, ProgramUnusable):
                await self._leave_without_answer()
            except MpsUnavailable as error:
                _LOG.warning("mps_daemon_left_running", gpu=self._gpu, reason=error)

    async def _leave_without_answer(self) -> None:
        if not self._life.end_unused():
            _LOG.warning("mps_daemon_left_running", gpu=self._gpu, reason="it does not listen and may have clients")
            return
        try:
            await self._parts.mode.restore()
        except MpsUnavailable as error:
            _LOG.warning("compute_mode_not_restored", gpu=self._gpu, reason=error)

    async def _next_step(self) -> MpsState:
        try:
            servers = await self._control.servers()
            self._life.note_answer()
            faulty = await self._faulty(servers)
            self._life.learn_clients({server: await self._control.clients(server) for server in servers})
        except NoDaemon as nobody:
            return await self._without_answer(nobody)
        except ProgramUnusable as unusable:
            return await self._without_program(unusable)
        except SilentDaemon as silent:
            return self._in_trouble(Trouble.SILENT, str(silent))
        if faulty:
            return self._in_trouble(Trouble.FAULT, f"GPU {self._gpu}: MPS server {faulty} is in state FAULT")
        self._trouble.over()
        if self._demand is None or self._demand.whole:
            return await self._without_demand(self._demand)
        return await self._serve(self._demand, servers)

    async def _serve(self, demand: MpsDemand, servers: Sequence[int]) -> MpsState:
        """Make everything right for clients of a daemon that answers."""
        await self._parts.mode.share()
        ceiling = await self._with_limits(demand, servers)
        if shut := self._parts.folders.closed_to_clients():
            return _not_ready(f"GPU {self._gpu}: {shut}")
        return MpsState(ready=True, reason="", sm_percent=ceiling.sm_percent, memory_mib=ceiling.memory_mib)

    async def _faulty(self, servers: Sequence[int]) -> int | None:
        for server in servers:
            if await self._control.server_status(server) is ServerStatus.FAULT:
                return server
        return None

    async def _with_limits(self, demand: MpsDemand, servers: Sequence[int]) -> Ceiling:
        """Make the limits right. What was right a moment ago is not read again, since each question costs a process."""
        now = self._clock()
        if self._verified is not None:
            for_demand, for_servers, ceiling, at = self._verified
            if (for_demand, for_servers) == (demand, servers) and now - at < self._timing.verify_seconds:
                return ceiling
        self._verified = None
        ceiling = await self._parts.backend.apply(self._control, demand, servers)
        self._verified = (demand, servers, ceiling, now)
        return ceiling

    async def _without_demand(self, whole: MpsDemand | None) -> MpsState:
        """End a daemon that nobody wants: after a while, or at once when one tenant is to have the whole GPU."""
        if living := self._life.clients.living():
            return _not_ready(f"GPU {self._gpu}: its MPS daemon still has {living} client{'s' if living > 1 else ''}")
        if whole is None and self._clock() - self._unwanted_since < self._timing.idle_seconds:
            return _not_ready(f"GPU {self._gpu}: no MPS daemon is wanted")
        await self._quit()
        return await self._given_back(whole)

    async def _given_back(self, whole: MpsDemand | None) -> MpsState:
        """Make the compute mode right for a GPU without a daemon."""
        if whole is not None:
            await self._parts.mode.give_whole()
            return MpsState(ready=True, reason="")
        await self._parts.mode.restore()
        self._is_restored = True
        return _not_ready(f"GPU {self._gpu}: no MPS daemon is wanted")

    async def _without_answer(self, nobody: NoDaemon) -> MpsState:
        """Decide what it means that no daemon listens, and start one when that is wanted and may be tried."""
        self._verified = None
        now = self._clock()
        if self._life.is_running(now):
            if self._life.is_starting(now):
                return _not_ready(f"GPU {self._gpu}: its MPS daemon is starting")
            return self._in_trouble(
                Trouble.SILENT, f"GPU {self._gpu}: its MPS daemon runs and does not listen ({nobody})"
            )
        self._trouble.over()
        if self._demand is None or self._demand.whole:
            return await self._given_back(self._demand)
        await self._parts.mode.share()
        return _not_ready(f"GPU {self._gpu}: {self._life.start(now)}")

    async def _without_program(self, unusable: ProgramUnusable) -> MpsState:
        """Do without the program where no daemon is needed, unless one runs that could only be asked by it."""
        if (self._demand is None or self._demand.whole) and not self._life.is_running(self._clock()):
            return await self._given_back(self._demand)
        raise unusable

    def _in_trouble(self, trouble: Trouble, what: str) -> MpsState:
        """Wait, or kill the daemon when waiting is over; see :mod:`.trouble` for which."""
        self._verified = None
        now = self._clock()
        self._trouble.seen(trouble, now)
        living = self._life.clients.living()
        if not self._trouble.is_to_be_killed(now, living_clients=living):
            return _not_ready(f"{what}; {self._trouble.outlook(living)}")
        self._life.kill(trouble, what.removeprefix(f"GPU {self._gpu}: "), now)
        self._trouble.over()
        return _not_ready(f"{what}; its daemon was killed and is started anew when it is wanted")

    async def _clients(self, servers: Sequence[int]) -> list[int]:
        return [client for server in servers for client in await self._control.clients(server)]

    async def _quit(self) -> None:
        await self._control.quit()
        await self._life.wait_end()


def _not_ready(reason: str) -> MpsState:
    return MpsState(ready=False, reason=reason)
