"""Chooses nodes for gated pods and takes their gates off; what fits nowhere stays gated, with the reason.

A round plans over one snapshot, the pods in the order of their turns, each decision counted before the next is made.
The patches go out several at a time; until the watch shows a pod released, its promise is kept
(:mod:`cta_group_operator.reconcile.releases`).
"""

import asyncio
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from cta_group_core.ids import NodeName
from cta_group_core.names import GATE_PLACEMENT
from cta_group_core.node_choice import refusal, safe_nodes
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock, CtaNodeView, KubeApi, PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.in_flight import Promise, Snapshots, is_gated
from cta_group_operator.reconcile.next_look import NextLook
from cta_group_operator.reconcile.pod_reports import PodReports
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.refusals import RefusalWords
from cta_group_operator.reconcile.release import nodes_to_pin
from cta_group_operator.reconcile.releases import Releases
from cta_group_operator.reconcile.replan import Replan
from cta_group_operator.reconcile.round import Round
from cta_group_operator.reconcile.showing import Showing
from cta_group_operator.reconcile.turns import Turns
from cta_group_operator.reconcile.unclaimed import Unclaimed
from cta_group_operator.reconcile.view import ClusterView, Room
from cta_group_operator.reconcile.waits import Waits
from cta_group_operator.settings import Settings

PLAN: Final = "plan"
_TURN_SECONDS: Final = 0.01
"""After so long the rest of the process gets a turn: the lease, the watches, admission."""
_ROUND_SECONDS: Final = 0.5
"""A round that takes longer ends, and the next one goes on with what has changed meanwhile."""
_PLAN_SPACING_SECONDS: Final = 0.2
"""Pods that come one after the other share a round and its snapshot of all nodes; one alone does not wait."""
_CHANGE_ARRIVES_SECONDS: Final = 0.2
"""The watch shows what changed about a pod so soon after its patch was refused."""


class Placement:
    """Plans and releases. ``tell``: called with a pod about which there is something else to say."""

    def __init__(
        self,
        view: ClusterView,
        api: KubeApi,
        clock: Clock,
        *,
        settings: Settings,
        metrics: Metrics,
        events: EventWriter,
        tell: Callable[[PodView], None],
        wait_of: Callable[[PodView], float] = lambda _: 0.0,
        room_of: Callable[[CtaNodeView], Room] | None = None,
        unclaimed: Unclaimed | None = None,
    ) -> None:
        """``wait_of``: seconds that a pod is not to be placed yet. ``room_of``: as of :class:`Offers`."""
        self._view = view
        self._enabled = settings.placement
        self._wait_of = wait_of
        self._unclaimed = unclaimed or Unclaimed(view, clock)
        self._gateless = settings.gateless_schedulers
        self._clock = clock
        self._tell = tell
        self._next_look = NextLook(clock)
        self._words = RefusalWords(clock, self._next_look.ask)
        self._waits = Waits(clock, metrics)
        self._turns = Turns(self._waits.seconds)
        self._snapshots = Snapshots(view, clock, room_of, self._unclaimed.is_unclaimed)
        self._showing = Showing(
            view, clock, events, after_seconds=settings.scale_up_after_seconds, look_again=self._next_look.ask
        )
        self._replan = Replan(
            view, api, clock, settings=settings, metrics=metrics, events=events, plan_again=self.plan_again, tell=tell
        )
        self._releases = Releases(
            view,
            api,
            clock,
            metrics=metrics,
            events=events,
            plan_soon=lambda: self.plans.mark_soon(PLAN),
            tell=tell,
            released=self._released,
        )
        self.held = self._releases.words
        """For each pod whose gate the API server does not let go, by uid, why."""
        self._reports = PodReports(view, clock, metrics=metrics, events=events, tell=tell)
        self.refusals = self._reports.refusals
        self.words: Mapping[str, str] = ChainMap(self.refusals, self._replan.told, self._reports.bypassed)
        """For each pod of which there is something to explain, by uid, what."""
        self.planned = asyncio.Event()
        """Set when every waiting pod was judged once in this process: from then on ``refusals`` are complete."""
        self.room_kept = 0
        """Pods that room was kept for in the last round."""
        self.plans = WorkQueue[str](
            "placement",
            self._plan,
            clock=clock,
            metrics=metrics,
            concurrency=1,
            spacing_seconds=_PLAN_SPACING_SECONDS,
            settle_seconds=_CHANGE_ARRIVES_SECONDS,
        )
        self.releases = self._releases.queue
        view.pods.subscribe(self._pod_changed)

    @property
    def queues(self) -> dict[str, WorkQueue[str]]:
        """Everything that must run, by name."""
        own = {"plans": self.plans, "releases": self.releases}
        return {**own, "reports": self._reports.queue, "replans": self._replan.queue}

    def forget(self) -> None:
        """Forget every decision; the next plan makes them anew."""
        self._releases.clear()
        self._words.clear()
        self._turns.complete()
        self._waits.clear()
        self._showing.forget()
        self._replan.forget()
        self._reports.clear()
        self._next_look.take()
        self.planned.clear()

    @property
    def waiting(self) -> int:
        """Pods whose gate is on."""
        return sum(is_gated(pod) for pod in self._view.places.nowhere())

    @property
    def backed_off(self) -> int:
        """Pods whose gate is on because a node refused others of their controller."""
        return sum(is_gated(pod) and self._wait_of(pod) > 0 for pod in self._view.places.nowhere())

    def resume(self) -> None:
        """Go on after the queues stood still: a patch that was cut off is sent again, and tells if it had arrived."""
        self._releases.resume()
        self._replan.begin()
        self.plans.mark(PLAN)

    def plan_again(self) -> None:
        """Look at every pod that waits."""
        self.plans.mark(PLAN)

    def _pod_changed(self, before: PodView | None, after: PodView | None) -> None:
        gone = before is not None and (after is None or after.ref.uid != before.ref.uid)
        if before is not None and after is not None and not gone and is_gated(before) and not is_gated(after):
            self._hear_of_release(before, after)
        if before is not None and (gone or (after is not None and not is_gated(after))):
            ours = self._releases.end(before.ref.uid) and not gone
            self._waits.end(before.ref.uid, released=ours)  # the watch may be faster than the patch's answer
            self._reports.forget(before)
            self._showing.forget(before.ref.uid)
        elif after is not None:
            self._releases.changed(after)
        if before is not None and (gone or (after is not None and after.node is not None)):
            self._reports.bypassed.pop(before.ref.uid, None)
        self.plans.mark(PLAN)

    def _hear_of_release(self, before: PodView, after: PodView) -> None:
        """Say so when it was not the operator, this one or its predecessor, that took the gate off."""
        chosen = (before.placed_on, before.terms) != (after.placed_on, after.terms)
        ours = chosen or after.ref.uid in self._releases.promises
        if self._enabled and not ours and not after.is_over:
            self._reports.gate_is_gone(after)

    async def _plan(self, _: str) -> float | None:
        """Decide who waits; return the seconds after which time alone would have it decided otherwise."""
        self.room_kept = 0
        waiting = self._turns.next_round(pod for pod in self._view.places.nowhere() if self._may_release(pod))
        if waiting and not await self._decide_all(waiting):
            return 0.0  # the rest over a newer snapshot
        self._turns.complete()
        self.planned.set()
        for pod in self._unclaimed.news():
            self._tell(pod)
        self._next_look.ask(self._unclaimed.left_seconds())
        self._next_look.ask(self._replan.left_seconds())
        return self._next_look.take()

    async def _decide_all(self, waiting: Iterable[PodView]) -> bool:
        """Decide pods in this order; return False when that takes too long for one round."""
        this = Round(self._snapshots.now(self._releases.promises if self._enabled else {}))
        begun = turn = self._clock.monotonic()
        self._waits.begin(waiting)
        for pod in waiting:
            if (now := self._clock.monotonic()) - turn > _TURN_SECONDS:
                await asyncio.sleep(0)
                turn = self._clock.monotonic()
            if now - begun > _ROUND_SECONDS:
                return False
            self._turns.judged(pod)
            try:
                self._decide(pod, this)
            except Exception as broken:  # noqa: BLE001 - one pod that breaks must not stop those behind it
                self._reports.broke(pod, broken)
            self.room_kept = this.kept
        return True

    def _may_release(self, pod: PodView) -> bool:
        """Tell whether our gate is the last one. A pod that others hold back would only keep room from others."""
        if pod.gates != (GATE_PLACEMENT,) or pod.ref.uid in self._releases.promises or pod.deleting:
            return False
        if (wait_seconds := max(self._wait_of(pod), self._releases.wait_of(pod))) > 0:
            self._next_look.ask(wait_seconds)
            self._reports.forget(pod)  # it waits for something else now
            return False
        return True

    def _decide(self, pod: PodView, this: Round) -> None:
        """Decide one pod. Equal pods are refused once: room only shrinks during a round."""
        if self._view.pods.get(pod.ref.name, pod.ref.namespace) is not pod:
            return  # it changed while this round paused; that change has marked the next one
        if not self._enabled or pod.scheduler in self._gateless:
            self._promise(pod, ())
            return
        avoided = self._replan.avoided_by(pod)
        alike = (pod.terms, pod.requests, frozenset(avoided))
        offers = this.found.all(avoided)
        nodes = () if alike in this.refused else safe_nodes(pod.terms, pod.requests, offers)
        if nodes:
            pinned = nodes_to_pin(pod, nodes)
            this.found.promise(pod, pinned)
            self._promise(pod, pinned)
            return
        this.refused.add(alike)
        hidden = self._showing.verdict(pod, offers)
        if hidden is None:
            self._promise(pod, ())
            return
        words = self._words.of(alike, lambda: refusal(pod.terms, pod.requests, offers))
        self._reports.refuse(pod, "; ".join(filter(None, (words, hidden))))
        self._next_look.ask(this.keep_room(pod, self._waits.seconds(pod), offers))

    def _promise(self, pod: PodView, nodes: tuple[NodeName, ...]) -> None:
        shown = self._enabled and not nodes and pod.scheduler not in self._gateless
        self._reports.forget(pod)
        self._releases.promise(Promise(pod, nodes, shown=shown))

    async def _released(self, promise: Promise) -> None:
        self._waits.end(promise.pod.ref.uid)
        if promise.shown:
            await self._showing.announce(promise.pod)
