"""Chooses nodes for gated pods and takes their gates off; what fits nowhere stays gated, with the reason.

A round plans over one snapshot, most important and oldest pods first, each decision counted before the next is made.
The patches go out several at a time; until the watch shows a pod released, its promise is kept here.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from cta_group_core.ids import NodeName
from cta_group_core.names import GATE_PLACEMENT
from cta_group_core.node_choice import refusal, safe_nodes
from cta_group_operator.errors import Conflict, NotFound, Rejected
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock, KubeApi, PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.in_flight import Offers, Promise, is_gated
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.release import nodes_to_pin, release_patch
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import PODS

_log = EventLog(__name__)

PLAN: Final = "plan"
_PATCHES_AT_ONCE: Final = 16
_TURN_SECONDS: Final = 0.01
"""After so long the rest of the process gets a turn: the lease, the watches, admission."""
_ROUND_SECONDS: Final = 0.5
"""A round that takes longer ends, and the next one goes on with what has changed meanwhile."""
_WORDS_SECONDS: Final = 1.0


class Placement:
    """Plans and releases. ``tell``: called with a pod whose reason to wait changed."""

    def __init__(
        self,
        view: ClusterView,
        api: KubeApi,
        clock: Clock,
        *,
        metrics: Metrics,
        events: EventWriter,
        enabled: bool,
        tell: Callable[[PodView], None],
        wait_of: Callable[[PodView], float] = lambda _: 0.0,
    ) -> None:
        """``wait_of``: seconds that a pod is not to be placed yet."""
        self._view = view
        self._api = api
        self._metrics = metrics
        self._events = events
        self._enabled = enabled
        self._tell = tell
        self._wait_of = wait_of
        self._clock = clock
        self._promises: dict[str, Promise] = {}
        self._words: dict[object, tuple[float, str]] = {}
        self.refusals: dict[str, str] = {}
        """For each waiting pod, by uid, why no node can take it."""
        self.planned = asyncio.Event()
        """Set when every waiting pod was judged once in this process: from then on ``refusals`` are complete."""
        self.plans = WorkQueue[str](
            "placement", self._plan, clock=clock, metrics=metrics, concurrency=1, spacing_seconds=0.05
        )
        self.releases = WorkQueue[str](
            "placement", self._release, clock=clock, metrics=metrics, concurrency=_PATCHES_AT_ONCE
        )
        self.reports = WorkQueue[str]("placement", self._report, clock=clock, metrics=metrics)
        view.pods.subscribe(self._pod_changed)

    @property
    def queues(self) -> dict[str, WorkQueue[str]]:
        """Everything that must run, by name."""
        return {"plans": self.plans, "releases": self.releases, "reports": self.reports}

    def forget(self) -> None:
        """Forget every decision; the next plan makes them anew."""
        self._promises.clear()
        self._words.clear()
        self.refusals.clear()
        self.planned.clear()

    @property
    def waiting(self) -> int:
        """Pods whose gate is on."""
        return sum(is_gated(pod) for pod in self._view.pods)

    def resume(self) -> None:
        """Go on after the queues stood still: a patch that was cut off is sent again, and tells if it had arrived."""
        for uid in self._promises:
            self.releases.mark(uid)
        self.plans.mark(PLAN)

    def _pod_changed(self, before: PodView | None, after: PodView | None) -> None:
        gone = before is not None and (after is None or after.ref.uid != before.ref.uid)
        if before is not None and (gone or (after is not None and not is_gated(after))):
            self._promises.pop(before.ref.uid, None)
            self.refusals.pop(before.ref.uid, None)
        self.plans.mark(PLAN)

    async def _plan(self, _: str) -> None:
        waiting = [pod for pod in self._view.pods if self._may_release(pod)]
        if not waiting:
            self.planned.set()
            return
        waiting.sort(key=lambda pod: (-pod.priority, pod.created, pod.ref.namespace, pod.ref.name))
        found = Offers(self._view, self._promises if self._enabled else {})
        refused: set[object] = set()
        begun = turn = self._clock.monotonic()
        for pod in waiting:
            if (now := self._clock.monotonic()) - turn > _TURN_SECONDS:
                await asyncio.sleep(0)
                turn = self._clock.monotonic()
            if now - begun > _ROUND_SECONDS:
                self.plans.mark(PLAN)  # the rest over a newer snapshot
                return
            self._decide(pod, found, refused)
        self.planned.set()

    def _may_release(self, pod: PodView) -> bool:
        """Tell whether our gate is the last one. A pod that others hold back would only keep room from others."""
        if pod.gates != (GATE_PLACEMENT,) or pod.ref.uid in self._promises or pod.deleting:
            return False
        if (wait_seconds := self._wait_of(pod)) > 0:
            self.plans.mark(PLAN, wait_seconds)
            self.refusals.pop(pod.ref.uid, None)  # it waits for something else now
            return False
        return True

    def _decide(self, pod: PodView, found: Offers, refused: set[object]) -> None:
        """Decide one pod. Equal pods are refused once: room only shrinks during a round."""
        if self._view.pods.get(pod.ref.name, pod.ref.namespace) is not pod:
            return  # it changed while this round paused; that change has marked the next one
        if not self._enabled:
            self._promise(pod, ())
            return
        alike = (pod.terms, pod.requests)
        nodes = () if alike in refused else safe_nodes(pod.terms, pod.requests, found.all())
        if nodes:
            pinned = nodes_to_pin(pod, nodes)
            found.promise(pod, pinned)
            self._promise(pod, pinned)
        else:
            refused.add(alike)
            self._refuse(pod, self._words_for(pod, found))

    def _words_for(self, pod: PodView, found: Offers) -> str:
        """Return why a pod waits.

        The words of equal pods are made anew once a second at most: they cost more than the decision, and rounds follow
        each other quickly while a cluster is busy.
        """
        alike, now = (pod.terms, pod.requests), self._clock.monotonic()
        made, words = self._words.get(alike, (now - _WORDS_SECONDS, ""))
        if now - made < _WORDS_SECONDS:
            self.plans.mark(PLAN, made + _WORDS_SECONDS - now)
            return words
        words = str(refusal(pod.terms, pod.requests, found.all()))
        self._words = {key: told for key, told in self._words.items() if now - told[0] < _WORDS_SECONDS}
        self._words[alike] = (now, words)
        return words

    def _promise(self, pod: PodView, nodes: tuple[NodeName, ...]) -> None:
        self._promises[pod.ref.uid] = Promise(pod, nodes)
        self.refusals.pop(pod.ref.uid, None)
        self.releases.mark(pod.ref.uid)

    def _refuse(self, pod: PodView, words: str) -> None:
        if self.refusals.get(pod.ref.uid) != words:
            self.refusals[pod.ref.uid] = words
            self._tell(pod)
            self.reports.mark(f"{pod.ref.namespace}/{pod.ref.name}")

    async def _release(self, uid: str) -> None:
        promise = self._promises.get(uid)
        if promise is None:
            return
        pod = promise.pod
        try:
            await self._api.json_patch(PODS.path(pod.ref.namespace, pod.ref.name), release_patch(pod, promise.nodes))
        except (Conflict, Rejected, NotFound) as changed:
            # The pod is another than the one decided on: forget the promise; what changed comes through the watch.
            _log.debug("release_outdated", pod=pod.ref, cause=changed)
            self._promises.pop(uid, None)
            self.plans.mark(PLAN, 0.2)
            return
        self._metrics.released.inc()
        _log.info("released", pod=pod.ref, groups=pod.groups, nodes=",".join(promise.nodes))

    async def _report(self, key: str) -> None:
        """Say on the pod itself why it waits; once, since the workload's explanation stays up to date."""
        namespace, _, name = key.partition("/")
        pod = self._view.pods.get(name, namespace)
        words = self.refusals.get(pod.ref.uid) if pod is not None else None
        if pod is not None and words is not None:
            await self._events.write(pod.ref, "NoRoomForGroups", words, once_for="")
