"""Latency budgets: looks at the vLLM servers of each workload that has one, and judges what they tell. Advice only.

One round a workload at a time, so that servers that answer slowly delay their own workload before others.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cta_group_core.backoff import wait_seconds
from cta_group_core.budget.advice import Advice, advise_fewer, advise_more
from cta_group_core.budget.objectives import Budget
from cta_group_core.budget.outcome import kept, outcomes
from cta_group_core.budget.peaks import Peaks
from cta_group_core.budget.report import MEASURING, NOT_SERVING, BudgetReport, judged, unknown, worth_telling
from cta_group_core.budget.target import MetricsTarget
from cta_group_core.budget.window import Observed, Reading, Window
from cta_group_core.errors import InvalidText
from cta_group_operator.errors import MetricsUnreadable
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock, ControllerView, ObjectRef, PodView
from cta_group_operator.reconcile.budget_pods import Asked, asked, budget_of, sizes_of, smallest
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.server_metrics import BudgetView, ServerMetrics

_ROUNDS: Final = 8
_READS_OF_ONE: Final = 4
"""Of a workload at once; with eight rounds no more than the client has connections."""
_RETELL_AFTER: Final = 10
"""Looks until other numbers are written."""
_MOST_DELAY: Final = 16
"""How many times as long until the next look, at most, while nothing answers."""


@dataclass(slots=True)
class _Watched:
    """What is known of one workload."""

    top: ObjectRef
    window: Window = field(default_factory=Window)
    peaks: Peaks = field(default_factory=Peaks)
    wanted: Budget | None = None
    """What ``peaks`` are shares of."""
    sizes: frozenset[tuple[int, ...]] = frozenset()
    """What the pods asked for that ``window`` and ``peaks`` tell of."""
    told: BudgetReport | None = None
    told_at: float = 0.0
    newest: BudgetReport | None = None
    silent: int = 0
    """Looks in a row that no server answered."""

    def judge(self, wanted: Budget, sizes: frozenset[tuple[int, ...]]) -> None:
        """Forget what says nothing about this budget and pods of these sizes: latencies are those of a size."""
        if sizes and sizes != self.sizes:
            self.window, self.peaks, self.sizes = Window(), Peaks(), sizes
        if wanted != self.wanted:
            self.peaks, self.wanted = Peaks(), wanted


class BudgetWatch:
    """Follows every workload with a budget while this replica leads.

    ``seconds``: how often, 0 for never. ``tell``: called when what is reported of a workload changed.
    """

    def __init__(
        self,
        view: ClusterView,
        servers: ServerMetrics,
        clock: Clock,
        *,
        metrics: Metrics,
        seconds: float,
        tell: Callable[[ObjectRef], None],
    ) -> None:
        self._view = view
        self._servers = servers
        self._clock = clock
        self._metrics = metrics
        self._seconds = seconds
        self._tell = tell
        self._watched: dict[str, _Watched] = {}
        self.queue = WorkQueue[ObjectRef](
            "budget", self.look, clock=clock, metrics=metrics, concurrency=_ROUNDS, spacing_seconds=seconds
        )
        view.pods.subscribe(self._changed)
        for store in view.controllers.values():
            store.subscribe(self._changed)

    @property
    def is_on(self) -> bool:
        """Tell whether it looks at all."""
        return self._seconds > 0

    def mark_everything(self) -> None:
        """Look at every workload that has a budget."""
        for one in (*self._view.all_controllers(), *self._view.pods):
            self._changed(None, one)

    def forget(self) -> None:
        """Forget everything: another replica looks meanwhile."""
        self._watched.clear()

    def report(self, top: ObjectRef) -> BudgetReport | None:
        """Return what is to be told of a workload; None while nothing is known yet."""
        known = self._watched.get(top.uid)
        return known.told if known is not None else None

    def newest(self, uid: str) -> BudgetReport | None:
        """Return the newest numbers of the top owner with that uid; they are told seldom. None: nothing is known."""
        known = self._watched.get(uid)
        return known.newest if known is not None else None

    def _changed(self, before: PodView | ControllerView | None, after: PodView | ControllerView | None) -> None:
        for one in (before, after):
            if self.is_on and one is not None and one.budget is not None:
                self.queue.mark(self._view.top_owner(one.ref, one.owner))

    async def look(self, top: ObjectRef) -> float | None:
        """Read the servers of one workload and judge what they tell; return the seconds until the next look."""
        budget = budget_of(top, self._view)
        if budget is None:
            if self._watched.pop(top.uid, None) is not None:
                self._tell(top)
            return None
        state = self._watched.get(top.uid) or self._begin(top)
        state.newest = await self._judge(state, budget)
        now = self._clock.monotonic()
        is_fresh = now - state.told_at < _RETELL_AFTER * self._seconds
        if worth_telling(state.told, state.newest, is_fresh=is_fresh):
            state.told, state.told_at = state.newest, now
            self._tell(top)
        return wait_seconds(1 + state.silent, self._seconds, _MOST_DELAY * self._seconds)

    def _begin(self, top: ObjectRef) -> _Watched:
        """Begin to watch a workload; whatever had its name before is no more."""
        for uid, one in list(self._watched.items()):
            if (one.top.namespace, one.top.kind, one.top.name) == (top.namespace, top.kind, top.name):
                del self._watched[uid]
        return self._watched.setdefault(top.uid, _Watched(top))

    async def _judge(self, state: _Watched, budget: BudgetView) -> BudgetReport:
        try:
            wanted = Budget.parse(budget.text)
        except InvalidText as wrong:
            return unknown(budget.text, "InvalidBudget", str(wrong))
        now = asked(state.top, budget, self._view)
        if not now.running:
            return unknown(str(wanted), NOT_SERVING, "no pod of it runs")
        state.judge(wanted, frozenset(pod.requests for pod, _ in now.pods))
        readings, problem = await self._read_all(now)
        state.silent = 0 if readings else state.silent + 1
        present = [pod.ref.uid for pod, _ in now.pods]
        state.window = state.window.after(self._clock.monotonic(), readings, present)
        observed = state.window.observed()
        if observed is None and not readings:
            return unknown(str(wanted), "NoMetrics", problem or now.problem)
        if observed is None:
            return unknown(str(wanted), MEASURING, "its servers were read once; a difference needs two")
        return self._judged(state, budget, wanted, observed, _note(now, readings, problem))

    def _judged(
        self, state: _Watched, budget: BudgetView, wanted: Budget, observed: Observed, note: str
    ) -> BudgetReport:
        found = outcomes(wanted, observed)
        state.peaks = state.peaks.after(self._clock.monotonic(), found, observed)
        pods = [pod for pod, _ in asked(state.top, budget, self._view).pods]
        sizes, kinds = sizes_of(pods, self._view)
        answer = kept(found)
        advice = Advice("")
        if answer is False:
            advice = advise_more(found, observed, sizes)
        elif answer is True:
            peak = state.peaks.worst()
            advice = advise_fewer(peak, sizes, smallest(budget, sizes, kinds, peak.cache_usage) if peak else None)
        return judged(wanted, found, observed, advice, note)

    async def _read_all(self, now: Asked) -> tuple[dict[str, Reading], str]:
        """Return the readings by uid of the pod, and why one of the others could not be read."""
        turns = asyncio.Semaphore(_READS_OF_ONE)
        answers = await asyncio.gather(*(self._read(pod, target, turns) for pod, target in now.pods))
        readings = {uid: answer for uid, answer in answers if isinstance(answer, Reading)}
        problems = [answer for _, answer in answers if isinstance(answer, str)]
        return readings, problems[0] if problems else ""

    async def _read(self, pod: PodView, target: MetricsTarget, turns: asyncio.Semaphore) -> tuple[str, Reading | str]:
        async with turns:
            try:
                answer: Reading | str = await self._servers.read(pod.address, target)
            except MetricsUnreadable as unreadable:
                answer = f"pod {pod.ref.name}: {unreadable}"
        self._metrics.budget_reads.labels(result="failed" if isinstance(answer, str) else "read").inc()
        return pod.ref.uid, answer


def _note(now: Asked, readings: Mapping[str, Reading], problem: str) -> str:
    if len(readings) == now.running:
        return ""
    why = problem or now.problem
    return f"{len(readings)} of {now.running} that run were read{why and f': {why}'}"
