"""The life of one GPU's daemon: started with back-off, found again, ended, and whom its end took along."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cta_group_core.ids import GpuUuid
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.mps.backoff import Backoff
from cta_group_plugin.mps.clients import ClientTable
from cta_group_plugin.mps.daemon import DaemonProcess
from cta_group_plugin.mps.metrics import MpsMetrics
from cta_group_plugin.mps.timing import Timing
from cta_group_plugin.mps_trouble import MpsLoss, MpsTrouble

_LOG = EventLog(__name__)
_REAP_POLL_SECONDS = 0.02


class DaemonLife:
    """What is known of the daemon of one GPU, and what can be done to it. Times are those of ``timing``'s clock."""

    def __init__(
        self,
        gpu: GpuUuid,
        *,
        record: Path,
        start: Callable[[], DaemonProcess],
        find: Callable[[], DaemonProcess | None],
        tidy: Callable[[], None],
        timing: Timing,
        metrics: MpsMetrics,
    ) -> None:
        """``start`` starts a process that does not answer yet; ``find`` finds one of an earlier supervisor.

        It finds it by ``record``. ``tidy`` removes what is left when a daemon has ended.
        """
        self._gpu = gpu
        self._record = record
        self._start = start
        self._tidy = tidy
        self._timing = timing
        self._metrics = metrics
        self._find = find
        self._is_recalled = False
        self._process: DaemonProcess | None = None
        self._started_at = float("-inf")
        self._backoff = Backoff(timing.backoff_first_seconds, timing.backoff_cap_seconds, timing.backoff_calm_seconds)
        self._last_end = ""
        self._answers = False
        self._may_have_clients = False
        self.clients = ClientTable()
        self.loss: MpsLoss | None = None

    @property
    def is_over(self) -> bool:
        """Tell whether it is known that there is no daemon."""
        return self._is_recalled and self._process is None and not self._answers

    def recall(self) -> None:
        """Find the daemon of an earlier supervisor, once. Raises MpsUnavailable when its record cannot be read."""
        if not self._is_recalled:
            self._process = self._find()
            self._may_have_clients = self._process is not None
            self._is_recalled = True

    def is_starting(self, now: float) -> bool:
        """Tell whether it was started a moment ago and has not answered yet."""
        return self._process is not None and not self._answers and now - self._started_at < self._timing.start_seconds

    def is_running(self, now: float) -> bool:
        """Tell whether its process runs; notes its end otherwise."""
        if self._process is not None:
            end = self._process.ended()
        else:
            end = "the daemon that was found running has ended" if self._answers else None
        if end is not None:
            self._note_end(end, now)
        return self._process is not None

    def start(self, now: float) -> str:
        """Start it, unless it is too early to try again; return why it is not ready yet. Raises MpsUnavailable."""
        if self._backoff.is_waiting(now):
            return f"{self._last_end}; {self._backoff.describe()}"
        self._backoff.started(now)
        try:
            self._process = self._start()
        except MpsUnavailable as error:
            self._last_end = str(error).removeprefix(f"GPU {self._gpu}: ")
            self._backoff.failed(now)
            raise
        self._started_at = now
        self._may_have_clients = False
        self._metrics.observe_start(self._gpu)
        _LOG.info("mps_daemon_started", gpu=self._gpu, pid=self._process.process.pid)
        return "its MPS daemon is starting"

    def note_answer(self) -> None:
        """Note that a daemon answers, whoever started it."""
        self._answers = self._may_have_clients = True

    def learn_clients(self, told: Mapping[int, Sequence[int]]) -> None:
        """Take the daemon's own account of its clients, by server; a server that has gone took its clients along."""
        for server, pids in self.clients.learn(told).items():
            self._note_loss(f"MPS server {server} ended", pids)

    def kill(self, trouble: MpsTrouble, why: str, now: float) -> None:
        """End a daemon that is in trouble at once. Raises MpsUnavailable when it is not known which process it is."""
        if self._process is None:
            raise MpsUnavailable(
                f"GPU {self._gpu}: {why}; {self._record} does not tell which process its daemon is: end it by hand"
            )
        _LOG.warning("mps_daemon_killed", gpu=self._gpu, why=why)
        self._metrics.observe_kill(self._gpu, trouble)
        self._process.kill()
        self._note_end(f"its MPS daemon was killed: {why}", now)

    async def wait_end(self) -> None:
        """Wait until a daemon that was asked to end has ended. Raises MpsUnavailable when it takes too long."""
        try:
            async with asyncio.timeout(self._timing.command_seconds):
                while self._process is not None and self._process.ended() is None:  # noqa: ASYNC110 - by waitpid
                    await asyncio.sleep(_REAP_POLL_SECONDS)
        except TimeoutError:
            raise MpsUnavailable(f"GPU {self._gpu}: its MPS daemon was asked to end and still runs") from None
        self._process = None
        self._answers = False
        self.clients.forget()
        self._tidy()
        _LOG.info("mps_daemon_ended", gpu=self._gpu, how="asked to, without clients")

    async def pause(self, seconds: float) -> None:
        """Wait, and no longer when the daemon ends meanwhile."""
        process = self._process
        if process is None or process.ended() is not None:
            await asyncio.sleep(seconds)
            return
        try:
            async with asyncio.timeout(seconds):
                await process.until_end()
        except TimeoutError:
            process.cut_output()

    def end_unused(self) -> bool:
        """Ask a daemon that has never answered to end; return whether none is left that may have clients."""
        if self._process is None or self._process.ended() is not None:
            return not self._answers
        if self._may_have_clients:
            return False
        self._process.terminate()
        return True

    def _note_end(self, end: str, now: float) -> None:
        self._last_end = end
        self._process = None
        self._answers = False
        self._backoff.failed(now)
        self._metrics.observe_end(self._gpu)
        _LOG.warning("mps_daemon_ended", gpu=self._gpu, how=end)
        self._note_loss(end, self.clients.forget())
        self._tidy()

    def _note_loss(self, reason: str, pids: tuple[int, ...]) -> None:
        if not pids:
            return
        self.loss = MpsLoss(at=time.time(), reason=reason, client_pids=pids)
        self._metrics.observe_lost_clients(self._gpu, len(pids))
        _LOG.warning("mps_clients_lost", gpu=self._gpu, reason=reason, clients=pids)
