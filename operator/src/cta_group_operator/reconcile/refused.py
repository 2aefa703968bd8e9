"""Pods that a kubelet refused: counted, told on the workload, taken away, and their controller's next pods held back.

Of each controller the newest one stays for a while, so that ``kubectl describe`` shows it. One that nobody controls
stays for good: it comes once, and its creator wants to read it. How long the next pod waits is counted in memory, from
what every replica hears; a process that starts begins with the shortest wait.
"""

import math
from typing import Final

from cta_group_core.refusals import Streak, refused_again
from cta_group_operator.errors import Conflict, NotFound
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.one_by_one import OneByOne
from cta_group_operator.ports import Clock, KubeApi, PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import PODS

_log = EventLog(__name__)

_SPACING_SECONDS: Final = 1.0
"""A controller whose pods are not gated makes several a second; they are taken away together."""
_MINUTE_LETTERS: Final = len("2026-01-01T00:00")
_KEPT_SECONDS: Final = 60.0
_MOST_STREAKS: Final = 1000


class RefusedPods:
    """Follows the pods. ``keep``: leave those that failed where they are."""

    def __init__(
        self, view: ClusterView, api: KubeApi, clock: Clock, *, metrics: Metrics, events: EventWriter, keep: bool
    ) -> None:
        self._view = view
        self._api = api
        self._clock = clock
        self._metrics = metrics
        self._events = events
        self._keep = keep
        self._streaks: dict[str, Streak] = {}
        """By uid of the controller."""
        self._counted: dict[str, float] = {}
        """When each refused pod that still exists was counted, by uid."""
        self.queue = WorkQueue[str](
            "refused", self._reconcile, clock=clock, metrics=metrics, spacing_seconds=_SPACING_SECONDS
        )
        view.pods.subscribe(self._pod_changed)

    def mark_everything(self) -> None:
        """Look at every pod that was refused."""
        for pod in self._view.pods:
            if pod.refused is not None:
                self.queue.mark(_key(pod))

    def wait_of(self, pod: PodView) -> float:
        """Return how many seconds a pod waits still because others of its controller were refused; mostly 0."""
        streak = self._streak_of(pod)
        return streak.left_seconds(self._clock.monotonic()) if streak is not None else 0.0

    def words_for(self, pod: PodView) -> str:
        """Return why a pod waits for that; empty when it does not."""
        return self.words_of(pod.owner.uid) if pod.owner is not None else ""

    def words_of(self, controller: str) -> str:
        """Return why the next pod of a controller, named by its uid, waits; empty when it does not."""
        streak = self._streaks.get(controller)
        if streak is None or not streak.left_seconds(self._clock.monotonic()):
            return ""
        times = "" if streak.count == 1 else f" {streak.count} times in a row"
        return (
            f"the one before it was refused by its node{times} ({streak.words}); "
            f"tried again {streak.wait_seconds:.0f} s after that"
        )

    def _streak_of(self, pod: PodView) -> Streak | None:
        return self._streaks.get(pod.owner.uid) if pod.owner is not None else None

    def _pod_changed(self, before: PodView | None, after: PodView | None) -> None:
        same = before is not None and after is not None and before.ref.uid == after.ref.uid
        if before is not None and not same:
            self._counted.pop(before.ref.uid, None)
        if after is None or after.refused is None:
            return
        news = before is None or not same or before.refused is None
        if news and after.owner is not None:
            self._note(after.owner.uid, after.words)
        self.queue.mark(_key(after))

    def _note(self, controller: str, words: str) -> None:
        now = self._clock.monotonic()
        self._streaks[controller] = refused_again(self._streaks.get(controller), now, words)
        if len(self._streaks) > _MOST_STREAKS:
            self._streaks = {uid: streak for uid, streak in self._streaks.items() if not streak.is_over(now)}

    async def _reconcile(self, key: str) -> float | None:
        """Tell of the refused pods of one controller; return the seconds until the newest may go too."""
        refused = sorted(self._refused(key), key=self._age)
        turns = OneByOne()
        for pod in refused:
            with turns.one(pod.ref):
                await self._tell(pod)
        left = None
        if not self._keep and refused and refused[-1].owner is not None:
            left = self._left_of(refused[-1])
            for pod in refused if left == 0.0 else refused[:-1]:
                with turns.one(pod.ref):
                    await self._delete(pod)
        turns.end()
        return left or None

    def _left_of(self, newest: PodView) -> float | None:
        """Return for how long the newest pod of a controller is kept still; None when it went meanwhile."""
        counted = self._counted.get(newest.ref.uid)
        if counted is None:
            return None
        return max(0.0, counted + self._kept_seconds(newest) - self._clock.monotonic())

    def _age(self, pod: PodView) -> tuple[float, str, str]:
        """Return what sorts the oldest first: Kubernetes tells the creation in whole seconds only."""
        return self._counted.get(pod.ref.uid, math.inf), pod.created, pod.ref.name

    def _refused(self, key: str) -> list[PodView]:
        namespace, _, name = key.partition("/")
        alone = self._view.pods.get(name, namespace) if name else None
        found = self._view.pods_of(key) if not name else [alone] if alone is not None else []
        return [pod for pod in found if pod.refused is not None and not pod.deleting]

    def _kept_seconds(self, pod: PodView) -> float:
        streak = self._streak_of(pod)
        return max(_KEPT_SECONDS, streak.wait_seconds if streak is not None else 0.0)

    async def _tell(self, pod: PodView) -> None:
        """Count a pod, and say so on what people look at: of a controller's pods, once a minute."""
        if pod.ref.uid in self._counted or pod.refused is None:
            return
        now = self._view.pods.get(pod.ref.name, pod.ref.namespace)
        if now is not None and now.ref.uid == pod.ref.uid:  # of one that went meanwhile nobody would forget it
            self._counted[pod.ref.uid] = self._clock.monotonic()
        self._metrics.refused.labels(cause=pod.refused.value).inc()
        top = self._view.top_owner(pod.ref, pod.owner)
        minute = self._clock.utc_text()[:_MINUTE_LETTERS]
        told = f"node {pod.node} refused pod {pod.ref.name}, which asks for {pod.groups} groups: {pod.words}"
        _log.warning("pod_refused", pod=pod.ref, node=pod.node, groups=pod.groups, cause=pod.words)
        await self._events.write(top, "RefusedByNode", told, once_for=f"{pod.owner.uid}/{minute}" if pod.owner else "")

    async def _delete(self, pod: PodView) -> None:
        try:
            await self._api.delete(PODS.path(pod.ref.namespace, pod.ref.name), pod.resource_version)
        except (NotFound, Conflict) as changed:
            _log.debug("refused_pod_changed", pod=pod.ref, cause=changed)
            return  # what changed comes through the watch and marks it again
        _log.info("refused_pod_deleted", pod=pod.ref)


def _key(pod: PodView) -> str:
    """Return the uid of a pod's controller; for a pod of its own, namespace and name."""
    return pod.owner.uid if pod.owner is not None else f"{pod.ref.namespace}/{pod.ref.name}"
