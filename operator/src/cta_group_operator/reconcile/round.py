"""What one round of placement has decided so far: what is left for the next pod, who is refused, what is kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cta_group_core.kept_room import keepable
from cta_group_core.node_choice import NodeOffer
from cta_group_core.turn import KEPT_MOST, kept_one, may_keep, turn_left_seconds
from cta_group_operator.ports import PodView
from cta_group_operator.reconcile.in_flight import Offers


@dataclass(slots=True)
class Round:
    """One snapshot with the decisions that were made over it."""

    found: Offers
    refused: set[object] = field(default_factory=set)
    """What pods that found no room have in common with others: those are refused without another look."""
    kept: int = 0
    """Pods that room is kept for."""

    def keep_room(self, pod: PodView, waited_seconds: float, offers: Sequence[NodeOffer]) -> float | None:
        """Keep room from those behind a pod, if it has waited long.

        Return the seconds until it is kept no more, or elsewhere; None for a pod that has nothing kept whenever it is.
        """
        if self.kept == KEPT_MOST or not may_keep(waited_seconds):
            return None
        kept = kept_one(keepable(pod.terms, pod.requests, offers), waited_seconds)
        if kept is not None:
            self.found.keep(kept, f"{pod.ref.namespace}/{pod.ref.name}")
            self.kept += 1
        return turn_left_seconds(waited_seconds)
