"""Pods that were released and that their scheduler has not bound: after a while they keep no room from others.

Kubernetes' own scheduler says why it does not bind a pod, and what it is told is planned again. Of another one nobody
knows whether it runs at all, so a pod that waits for it must not hold a GPU for ever. Should it bind the pod after all,
the node may refuse it, once.
"""

from typing import Final

from cta_group_core.names import DEFAULT_SCHEDULER
from cta_group_operator.ports import Clock, PodView
from cta_group_operator.reconcile.view import ClusterView

UNCLAIMED_SECONDS: Final = 300.0


class Unclaimed:
    """Follows pods of other schedulers, on every replica: a new leader knows how long they wait already."""

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
        return (
            f"scheduler {pod.scheduler} has not taken it for {minutes:.0f} minutes, so no room is kept; is it running?"
        )

    def _left(self, since: float) -> float:
        return UNCLAIMED_SECONDS - (self._clock.monotonic() - since)

    def _pod_changed(self, before: PodView | None, after: PodView | None) -> None:
        if before is not None and (after is None or after.ref.uid != before.ref.uid):
            self._pass_by(before)
        if after is None:
            return
        if after.scheduler == DEFAULT_SCHEDULER or after.gates or after.node is not None or after.is_over:
            self._pass_by(after)
        else:
            self._since.setdefault(after.ref.uid, self._clock.monotonic())
            self._pods[after.ref.uid] = after

    def _pass_by(self, pod: PodView) -> None:
        self._since.pop(pod.ref.uid, None)
        self._pods.pop(pod.ref.uid, None)
        self._told.discard(pod.ref.uid)
