"""Pods that were released and that their scheduler has not bound: after a while they keep no room from others.

Kubernetes' own scheduler says why it does not bind a pod, and what it is told is planned again. Of another one nobody
knows whether it runs at all, so a pod that waits for it must not hold a GPU for ever. Should it bind the pod after all,
the node may refuse it, once.
"""

from collections.abc import Callable
from typing import Final

from cta_group_core.names import DEFAULT_SCHEDULER
from cta_group_operator.ports import Clock, PodView
from cta_group_operator.reconcile.view import ClusterView

UNCLAIMED_SECONDS: Final = 300.0


class Unclaimed:
    """Follows pods of other schedulers. ``look_again``: called with the seconds after which one may have become so."""

    def __init__(self, view: ClusterView, clock: Clock, look_again: Callable[[float], None]) -> None:
        self._view = view
        self._clock = clock
        self._look_again = look_again
        self._since: dict[str, float] = {}
        view.pods.subscribe(self._pod_changed)

    def begin(self) -> None:
        """Look again at the pods that wait already."""
        if self._since:
            self._look_again(UNCLAIMED_SECONDS)

    def is_unclaimed(self, pod: PodView) -> bool:
        """Tell whether a released pod has waited so long that it holds no room."""
        since = self._since.get(pod.ref.uid)
        return since is not None and self._clock.monotonic() - since >= UNCLAIMED_SECONDS

    def words_for(self, pod: PodView) -> str:
        """Return what to say of it; empty of one that is not so."""
        if not self.is_unclaimed(pod):
            return ""
        minutes = UNCLAIMED_SECONDS / 60
        return (
            f"scheduler {pod.scheduler} has not taken it for {minutes:.0f} minutes, so no room is kept; is it running?"
        )

    def _pod_changed(self, before: PodView | None, after: PodView | None) -> None:
        if before is not None and (after is None or after.ref.uid != before.ref.uid):
            self._since.pop(before.ref.uid, None)
        if after is None:
            return
        if after.scheduler == DEFAULT_SCHEDULER or after.gates or after.node is not None or after.is_over:
            self._since.pop(after.ref.uid, None)
        elif after.ref.uid not in self._since:
            self._since[after.ref.uid] = self._clock.monotonic()
            self._look_again(UNCLAIMED_SECONDS)
