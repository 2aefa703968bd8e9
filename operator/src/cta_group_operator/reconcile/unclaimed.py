"""Pods that were released and that their scheduler has not bound: after a while they keep no room from others.

Kubernetes' own scheduler says why it does not bind a pod, and where other nodes might help the pod is planned again.
Where none would, as for a volume that is not there, and of other schedulers, of which nobody knows whether they run at
all, the pod must not hold a GPU for ever. Should it be bound after all, the node may refuse it, once.
"""

from typing import Final

from cta_group_core.names import DEFAULT_SCHEDULER
from cta_group_core.scheduler_words import would_other_nodes_help
from cta_group_operator.ports import Clock, PodView
from cta_group_operator.reconcile.view import ClusterView

UNCLAIMED_SECONDS: Final = 300.0


class Unclaimed:
    """Follows such pods on every replica: a new leader knows how long they wait already."""

    def __init__(self, view: ClusterView, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._pods: dict[str, PodView] = {}
        self._told: set[str] = set()
        view.pods.subscribe(self._pod_changed)

    def is_unclaimed(self, pod: PodView) -> bool:
        """Tell whether a released pod has waited so long that it holds no room."""
        since = self._since.get(pod.ref.uid)
        return since is not None and self._left(since) <= 0

    def left_seconds(self) -> float | None:
        """Return when the next of them becomes so; None while nobody is about to."""
        return min((left for since in self._since.values() if (left := self._left(since)) > 0), default=None)

    def news(self) -> list[PodView]:
        """Return those that became so since this was asked last."""
        new = [pod for uid, pod in self._pods.items() if uid not in self._told and self.is_unclaimed(pod)]
        self._told.update(pod.ref.uid for pod in new)
        return new

    def words_for(self, pod: PodView) -> str:
        """Return what to say of it; empty of one that is not so."""
        if not self.is_unclaimed(pod):
            return ""
        minutes = UNCLAIMED_SECONDS / 60
        told = f"scheduler {pod.scheduler} has not taken it for {minutes:.0f} minutes, so no room is kept"
        return f"{told} ({pod.words})" if pod.scheduler == DEFAULT_SCHEDULER else f"{told}; is it running?"

    def _left(self, since: float) -> float:
        return UNCLAIMED_SECONDS - (self._clock.monotonic() - since)

    def _pod_changed(self, before: PodView | None, after: PodView | None) -> None:
        if before is not None and (after is None or after.ref.uid != before.ref.uid):
            self._pass_by(before)
        if after is None:
            return
        if _may_be_forgotten(after):
            self._since.setdefault(after.ref.uid, self._clock.monotonic())
            self._pods[after.ref.uid] = after
        else:
            self._pass_by(after)

    def _pass_by(self, pod: PodView) -> None:
        self._since.pop(pod.ref.uid, None)
        self._pods.pop(pod.ref.uid, None)
        self._told.discard(pod.ref.uid)


def _may_be_forgotten(pod: PodView) -> bool:
    """Tell whether a released pod waits for what nobody here hears of or can do anything about."""
    if pod.gates or pod.node is not None or pod.is_over:
        return False
    return pod.scheduler != DEFAULT_SCHEDULER or (pod.unschedulable and not would_other_nodes_help(pod.words))
