"""What placement has to say of single pods: why they wait, and that somebody else took their gate off."""

from collections.abc import Callable
from typing import Final

from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock, PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.view import ClusterView

_log = EventLog(__name__)

GATE_GONE: Final = (
    "its scheduling gate was taken off by somebody other than the operator, so no GPU with room was looked for: the "
    "scheduler binds it to any node with enough groups in sum, whose plugin refuses it when no single GPU has room"
)


class PodReports:
    """Words by pod, events with the same words, and whoever explains workloads told of each change."""

    def __init__(
        self, view: ClusterView, clock: Clock, *, metrics: Metrics, events: EventWriter, tell: Callable[[PodView], None]
    ) -> None:
        self._view = view
        self._events = events
        self._tell = tell
        self._errors = metrics.reconcile_errors.labels(kind="placement")
        self.refusals: dict[str, str] = {}
        """For each waiting pod, by uid, why no node can take it."""
        self.bypassed: dict[str, str] = {}
        """For each pod, by uid, that lost its gate to somebody else and is not bound yet."""
        self.queue = WorkQueue[str]("placement", self._write, clock=clock, metrics=metrics)

    def clear(self) -> None:
        """Forget everything."""
        self.refusals.clear()
        self.bypassed.clear()

    def forget(self, pod: PodView) -> None:
        """Forget why a pod waited."""
        self.refusals.pop(pod.ref.uid, None)

    def refuse(self, pod: PodView, words: str) -> None:
        """Say why a pod waits."""
        self._say(self.refusals, pod, words)

    def broke(self, pod: PodView, broken: Exception) -> None:
        """Say that a fault of ours keeps a pod from being judged."""
        words = f"a fault of the operator keeps it from being placed; its log has more: {broken!r}"
        if self.refusals.get(pod.ref.uid) != words:
            self._errors.inc()
            _log.error("pod_not_judged", pod=pod.ref, cause=broken)
        self.refuse(pod, words)

    def gate_is_gone(self, pod: PodView) -> None:
        """Say that the operator did not choose where a pod goes."""
        self._say(self.bypassed, pod, GATE_GONE)

    def _say(self, known: dict[str, str], pod: PodView, words: str) -> None:
        if known.get(pod.ref.uid) != words:
            known[pod.ref.uid] = words
            self._tell(pod)
            self.queue.mark(f"{pod.ref.namespace}/{pod.ref.name}")

    async def _write(self, key: str) -> None:
        """Say it on the pod itself; once, since the workload's explanation stays up to date."""
        namespace, _, name = key.partition("/")
        pod = self._view.pods.get(name, namespace)
        if pod is None:
            return
        for reason, known in (("NoRoomForGroups", self.refusals), ("GateRemoved", self.bypassed)):
            if (words := known.get(pod.ref.uid)) is not None:
                await self._events.write(pod.ref, reason, words, once_for="")
