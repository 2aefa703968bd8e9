"""Sends the patches that release pods, and holds back those that the API server does not take.

A promise keeps room from others, so it lasts until the watch shows the pod released, and while nobody knows what became
of its patch. A pod that is found as it was decided on, gate and all, was not released: its promise goes, it is planned
again after a while that grows, and why is told on the pod, in its explanation and by a metric.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from cta_group_core.backoff import wait_seconds
from cta_group_operator.errors import ApiError, ApiUnavailable, Forbidden, Rejected
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics, ReleaseFailure
from cta_group_operator.ports import Clock, KubeApi, PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.in_flight import Promise
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.release import release_patch
from cta_group_operator.reconcile.showing import SHOWN
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import PODS

_log = EventLog(__name__)

_PATCHES_AT_ONCE: Final = 16
_HELD_SECONDS: Final = (1.0, 60.0)
"""How long a pod is held back after the first refusal, and at most; twice as long each time."""
_UNANSWERED_MOST: Final = 5
"""Patches of one promise without an answer, after which the pod is looked at: a broken webhook looks like an outage."""
_WORDS_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class _Held:
    """A pod that the API server did not let go."""

    count: int
    """How often in a row."""
    until: float
    """By the monotonic clock."""


class Releases:
    """The promises, and what stands in their way.

    ``plan_soon``: called when pods without a promise are to be planned in a moment. ``tell``: called with a pod about
    which there is something else to say. ``released``: called once for each promise that was kept.
    """

    def __init__(
        self,
        view: ClusterView,
        api: KubeApi,
        clock: Clock,
        *,
        metrics: Metrics,
        events: EventWriter,
        plan_soon: Callable[[], None],
        tell: Callable[[PodView], None],
        released: Callable[[Promise], Awaitable[None]],
    ) -> None:
        self._view = view
        self._api = api
        self._clock = clock
        self._metrics = metrics
        self._events = events
        self._plan_soon = plan_soon
        self._tell = tell
        self._released = released
        self.promises: dict[str, Promise] = {}
        """What was decided and is not seen yet, by uid of the pod."""
        self.words: dict[str, str] = {}
        """Why pods are not released though there is room, by uid."""
        self._held: dict[str, _Held] = {}
        self._unanswered: dict[str, int] = {}
        self._outdated: set[str] = set()
        """Pods that changed; what they are now is still to come by the watch."""
        self.queue = WorkQueue[str](
            "placement", self._release, clock=clock, metrics=metrics, concurrency=_PATCHES_AT_ONCE
        )

    def promise(self, promise: Promise) -> None:
        """Release a pod as decided."""
        self.promises[promise.pod.ref.uid] = promise
        self.queue.mark(promise.pod.ref.uid)

    def resume(self) -> None:
        """Send again what was cut off; a patch that had arrived says so."""
        for uid in self.promises:
            self.queue.mark(uid)

    def clear(self) -> None:
        """Forget everything."""
        self.promises.clear()
        self.words.clear()
        self._held.clear()
        self._unanswered.clear()
        self._outdated.clear()

    def end(self, uid: str) -> bool:
        """Forget a pod that is gone or has no gate any more; tell whether it was promised."""
        for known in (self.words, self._held, self._unanswered):
            known.pop(uid, None)
        self._outdated.discard(uid)
        return self.promises.pop(uid, None) is not None

    def changed(self, pod: PodView) -> None:
        """Hear of a pod that is gated still: a promise for what it was before is over."""
        promise = self.promises.get(pod.ref.uid)
        if promise is not None and pod.ref.uid in self._outdated and not _is_same(promise.pod, pod):
            self._drop(pod.ref.uid)

    def wait_of(self, pod: PodView) -> float:
        """Return how many seconds a pod is held back still; mostly 0."""
        held = self._held.get(pod.ref.uid)
        return max(0.0, held.until - self._clock.monotonic()) if held is not None else 0.0

    async def _release(self, uid: str) -> None:
        promise = self.promises.get(uid)
        if promise is None:
            return
        patch = release_patch(promise.pod, promise.nodes, told=SHOWN if promise.shown else "")
        try:
            await self._api.json_patch(_path(promise.pod), patch)
        except ApiError as no:
            await self._find_out(promise, no)
            return
        if self.words.pop(uid, None) is not None:
            self._tell(promise.pod)
        self._metrics.released.inc()
        _log.info("released", pod=promise.pod.ref, groups=promise.pod.groups, nodes=",".join(promise.nodes))
        await self._released(promise)

    async def _find_out(self, promise: Promise, no: ApiError) -> None:
        """Find out what became of a patch. Raises ApiError when that cannot be known now: the promise stays."""
        uid = promise.pod.ref.uid
        if self.promises.get(uid) is not promise:
            return  # the watch was faster
        if isinstance(no, ApiUnavailable):
            self._unanswered[uid] = self._unanswered.get(uid, 0) + 1
            if self._unanswered[uid] < _UNANSWERED_MOST:
                self._count(_cause_of(no))
                raise no
        version = await self._version_now(promise.pod)
        if self.promises.get(uid) is not promise:
            return
        seen = self._view.pods.get(promise.pod.ref.name, promise.pod.ref.namespace)
        if version == promise.pod.resource_version:
            self._count(_cause_of(no))
            await self._hold(promise.pod, no)
        elif version and seen is not None and _is_same(promise.pod, seen):
            self._count(ReleaseFailure.CHANGED)
            self._outdated.add(uid)  # perhaps it is released, so its room is kept until that is known
        else:
            self._count(ReleaseFailure.CHANGED)
            self._drop(uid)

    async def _version_now(self, pod: PodView) -> str:
        """Return the resourceVersion that the API server has of a pod; empty when it is gone."""
        query = {"fieldSelector": f"metadata.name={pod.ref.name}", "limit": "1"}  # there is no right to get one pod
        page = await self._api.get(PODS.path(pod.ref.namespace), query)
        found = [body["metadata"] for body in page.get("items") or ()]
        return next((str(one["resourceVersion"]) for one in found if one["uid"] == pod.ref.uid), "")

    def _drop(self, uid: str) -> None:
        self.promises.pop(uid, None)
        self._unanswered.pop(uid, None)
        self._outdated.discard(uid)
        self._plan_soon()

    async def _hold(self, pod: PodView, no: ApiError) -> None:
        """Let others have the room, and try again later."""
        uid = pod.ref.uid
        count = self._held[uid].count + 1 if uid in self._held else 1
        wait = wait_seconds(count, *_HELD_SECONDS)
        self._held[uid] = _Held(count, self._clock.monotonic() + wait)
        self._drop(uid)
        told = f"the API server does not let the operator take its scheduling gate off: {str(no)[:_WORDS_MOST]}"
        self.words[uid] = f"{told} (tried {count} times, and again {wait:.0f} s after the last)"
        self._tell(pod)
        _log.warning("release_refused", pod=pod.ref, count=count, retry_seconds=wait, cause=no)
        await self._events.write(pod.ref, "ReleaseRefused", told, once_for="")

    def _count(self, cause: ReleaseFailure) -> None:
        self._metrics.release_failures.labels(cause=cause.value).inc()


_CAUSES: Final = {Forbidden: ReleaseFailure.FORBIDDEN, Rejected: ReleaseFailure.REJECTED}


def _cause_of(no: ApiError) -> ReleaseFailure:
    return _CAUSES.get(type(no), ReleaseFailure.UNAVAILABLE)


def _is_same(one: PodView, other: PodView) -> bool:
    return (one.ref.uid, one.resource_version) == (other.ref.uid, other.resource_version)


def _path(pod: PodView) -> str:
    return PODS.path(pod.ref.namespace, pod.ref.name)
