"""Pods that find no room, shown to the cluster's autoscaler after a while: released without a node.

Such a pod is no promise on any node: nobody knows where it goes until it is bound, and from then on it counts there
like every other. Since when a pod finds no room is what this process saw.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Final

from cta_group_core.ids import NodeName
from cta_group_core.node_choice import NodeOffer
from cta_group_core.scale_up import why_not_shown
from cta_group_operator.ports import Clock, PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.in_flight import pinned_nodes
from cta_group_operator.reconcile.view import ClusterView

SHOWN: Final = "any"
"""What the annotation of a pod says that was released without a node."""
_LOOK_AGAIN_SECONDS: Final = 5.0


class Showing:
    """Decides when a refused pod is shown. ``after_seconds``: None where no autoscaler is there."""

    def __init__(
        self,
        view: ClusterView,
        clock: Clock,
        events: EventWriter,
        *,
        after_seconds: float | None,
        look_again: Callable[[float], None],
    ) -> None:
        self._view = view
        self._clock = clock
        self._events = events
        self._after_seconds = after_seconds
        self._look_again = look_again
        self._since: dict[str, float] = {}
        self._looked: dict[Hashable, tuple[float, str]] = {}

    def forget(self, uid: str | None = None) -> None:
        """Forget a pod, or all of them."""
        if uid is not None:
            self._since.pop(uid, None)
            return
        self._since.clear()
        self._looked.clear()

    def verdict(self, pod: PodView, offers: Sequence[NodeOffer]) -> str | None:
        """Return None when a refused pod is to be shown now, else words for its reason to wait; they may be empty."""
        if self._after_seconds is None:
            return ""
        now = self._clock.monotonic()
        left = self._since.setdefault(pod.ref.uid, now) + self._after_seconds - now
        if left > 0:
            self._look_again(left)
            return ""
        self._look_again(_LOOK_AGAIN_SECONDS)
        return self._why_not(pod, offers, now) or None

    def _why_not(self, pod: PodView, offers: Sequence[NodeOffer], now: float) -> str:
        """Return why a pod is not shown, looked at every few seconds for all that are alike."""
        alike = (pod.terms, pod.requests, pod.priority, pod.evicts)
        self._looked = {key: told for key, told in self._looked.items() if now - told[0] < _LOOK_AGAIN_SECONDS}
        if alike not in self._looked:
            self._looked[alike] = (now, why_not_shown(pod.terms, pod.requests, offers, partial(self._evictable, pod)))
        return self._looked[alike][1]

    def _evictable(self, pod: PodView, node: NodeName) -> int:
        """Return the groups of pods on a node, or on their way, that the scheduler would evict for a pod."""
        if not pod.evicts:
            return 0
        going = (one for one in self._view.places.nowhere() if node in pinned_nodes(one.terms))
        there = (*self._view.places.on(node), *going)
        return sum(one.groups for one in there if one.priority < pod.priority and not one.is_over)

    async def announce(self, pod: PodView) -> None:
        """Say on a pod that it was shown."""
        told = (
            f"no node has room for its {pod.groups} groups, so it was released without a node: the autoscaler sees it, "
            "and the scheduler binds it to the first node with enough groups"
        )
        await self._events.write(pod.ref, "ShownToAutoscaler", told, once_for="", kind="Normal")
