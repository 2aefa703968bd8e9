"""What is done about the daemon of one GPU at each look: it is there when demanded, and never ended under a client.

Each look finds out what is true and does the next step towards what is wanted, so it does not matter who started the
daemon, or what happened while nobody looked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cta_group_core.ids import GpuUuid
from cta_group_core.plurals import counted
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.mps.backend import Ceiling, LimitBackend
from cta_group_plugin.mps.compute_mode import ModeKeeper
from cta_group_plugin.mps.control import MpsControlClient, NoDaemon, ServerStatus, SilentDaemon
from cta_group_plugin.mps.folders import MpsFolders
from cta_group_plugin.mps.life import DaemonLife
from cta_group_plugin.mps.program import ProgramUnusable
from cta_group_plugin.mps.timing import Timing
from cta_group_plugin.mps.trouble import TroubleWatch
from cta_group_plugin.mps_trouble import MpsTrouble
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


class DaemonSteps:
    """The steps, and what is wanted."""

    def __init__(self, parts: KeeperParts, *, timing: Timing, clock: Callable[[], float]) -> None:
        self._gpu: GpuUuid = parts.folders.gpu
        self._parts = parts
        self._control = parts.control
        self._life = parts.life
        self._timing = timing
        self._clock = clock
        self.demand: MpsDemand | None = None
        """What is wanted; None: nothing."""
        self._unwanted_since = clock()
        self._trouble = TroubleWatch(timing.wedged_seconds, timing.fault_seconds)
        self._verified: tuple[MpsDemand, Sequence[int], Ceiling, float] | None = None
        self._is_restored = False

    @property
    def are_over(self) -> bool:
        """Tell whether nothing is demanded, nothing runs and nothing is to be given back."""
        return self.demand is None and self._life.is_over and self._is_restored

    def want(self, demand: MpsDemand | None) -> None:
        """Change what is wanted; the next step acts on it."""
        if demand == self.demand:
            return
        if demand is None:
            self._unwanted_since = self._clock()
        self.demand = demand
        self._is_restored = False

    async def take(self) -> MpsState:
        """Do the next step and return the state after it, without clients. Raises MpsUnavailable, OSError."""
        self._life.recall()
        try:
            servers = await self._control.servers()
            self._life.note_answer()
            faulty = await self._faulty(servers)
            self._life.learn_clients({server: await self._control.clients(server) for server in servers})
            if faulty:
                return self._in_trouble(MpsTrouble.FAULT, f"MPS server {faulty} is in state FAULT")
            state = await self._with_answer(servers)
        except NoDaemon as nobody:
            return await self._without_answer(nobody)
        except ProgramUnusable as unusable:
            return await self._without_program(unusable)
        except SilentDaemon as silent:
            return self._in_trouble(MpsTrouble.SILENT, str(silent))
        self._trouble.over()
        return state

    async def leave(self) -> None:
        """End a daemon without clients and restore the compute mode; leave one that has clients, or may have, alone.

        Raises MpsUnavailable, OSError when the daemon was left running because of that.
        """
        self._life.recall()
        try:
            servers = await self._control.servers()
            clients = [client for server in servers for client in await self._control.clients(server)]
            if clients:
                _LOG.info("mps_daemon_left_running", gpu=self._gpu, clients=len(clients))
                return
            await self._quit()
        except (NoDaemon, ProgramUnusable):
            if not self._life.end_unused():
                raise MpsUnavailable(f"GPU {self._gpu}: it does not listen and may have clients") from None
        try:
            await self._parts.mode.restore()
        except MpsUnavailable as error:
            _LOG.warning("compute_mode_not_restored", gpu=self._gpu, reason=error)

    async def _with_answer(self, servers: Sequence[int]) -> MpsState:
        """Make everything right about a daemon that answers."""
        if self.demand is None or self.demand.whole:
            return await self._without_demand(self.demand)
        await self._parts.mode.share()
        ceiling = await self._with_limits(self.demand, servers)
        if shut := self._parts.folders.closed_to_clients():
            return self._not_ready(shut)
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
            return self._not_ready(f"its MPS daemon still has {counted(living, 'client')}")
        if whole is None and self._clock() - self._unwanted_since < self._timing.idle_seconds:
            return self._not_ready("no MPS daemon is wanted")
        await self._quit()
        return await self._given_back(whole)

    async def _given_back(self, whole: MpsDemand | None) -> MpsState:
        """Make the compute mode right for a GPU without a daemon."""
        if whole is not None:
            await self._parts.mode.give_whole()
            return MpsState(ready=True, reason="")
        await self._parts.mode.restore()
        self._is_restored = True
        return self._not_ready("no MPS daemon is wanted")

    async def _without_answer(self, nobody: NoDaemon) -> MpsState:
        """Decide what it means that no daemon listens, and start one when that is wanted and may be tried."""
        self._verified = None
        now = self._clock()
        if self._life.is_running(now):
            if self._life.is_starting(now):
                return self._not_ready("its MPS daemon is starting")
            return self._in_trouble(MpsTrouble.SILENT, f"its MPS daemon runs and does not listen ({nobody})")
        self._trouble.over()
        if self.demand is None or self.demand.whole:
            return await self._given_back(self.demand)
        await self._parts.mode.share()
        return self._not_ready(self._life.start(now))

    async def _without_program(self, unusable: ProgramUnusable) -> MpsState:
        """Do without the program where no daemon is needed, unless one runs that could only be asked by it."""
        if (self.demand is None or self.demand.whole) and not self._life.is_running(self._clock()):
            return await self._given_back(self.demand)
        raise unusable

    def _in_trouble(self, trouble: MpsTrouble, what: str) -> MpsState:
        """Wait, or kill the daemon when waiting is over; see :mod:`.trouble` for which."""
        what = what.removeprefix(f"GPU {self._gpu}: ")
        self._verified = None
        now = self._clock()
        self._trouble.seen(trouble, now)
        living = self._life.clients.living()
        if not self._trouble.is_to_be_killed(now, living_clients=living):
            return self._not_ready(f"{what}; {self._trouble.outlook(living)}", trouble)
        self._life.kill(trouble, what, now)
        self._trouble.over()
        return self._not_ready(f"{what}; its daemon was killed and is started anew when it is wanted", trouble)

    async def _quit(self) -> None:
        await self._control.quit()
        await self._life.wait_end()

    def _not_ready(self, why: str, trouble: MpsTrouble | None = None) -> MpsState:
        return MpsState(ready=False, reason=f"GPU {self._gpu}: {why}", trouble=trouble)
