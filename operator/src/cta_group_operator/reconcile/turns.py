"""The order in which waiting pods are decided, over rounds that may be too short for all of them.

What is important and old comes first (:mod:`cta_group_core.turn`). A round that ends early is gone on with where it
stopped, so that many pods that fit nowhere cannot keep those behind them from being looked at. Who is older is the API
server's word, by one clock for all; how long a pod has found no room is what this process saw.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache

from cta_group_core.turn import KEPT_MOST, in_turn, may_keep
from cta_group_operator.ports import PodView


class Turns:
    """Whose turn it is."""

    def __init__(self, waited_seconds: Callable[[PodView], float]) -> None:
        """``waited_seconds``: for how long a pod has found no room."""
        self._waited_seconds = waited_seconds
        self._judged: set[str] = set()

    def next_round(self, waiting: Iterable[PodView]) -> list[PodView]:
        """Return whom to decide now, in order: those whom the last rounds did not come to, else all.

        Those for whom room may be kept are always among them.
        """
        by_age = sorted(waiting, key=lambda pod: (pod.created, pod.ref.namespace, pod.ref.name))
        order = in_turn(by_age, priority=lambda pod: pod.priority, created=lambda pod: _seconds(pod.created) or 0.0)
        missed = [pod for pod in order if pod.ref.uid not in self._judged]
        if not missed or not self._judged:
            self._judged.clear()
            return order
        patient = [pod for pod in order if may_keep(self._waited_seconds(pod))][:KEPT_MOST]
        return [pod for pod in order if pod in patient or pod.ref.uid not in self._judged]

    def judged(self, pod: PodView) -> None:
        """Hear that a pod was decided in this pass."""
        self._judged.add(pod.ref.uid)

    def complete(self) -> None:
        """Hear that everyone was decided: the next round begins with the first."""
        self._judged.clear()


@lru_cache(maxsize=20_000)  # each waiting pod is asked about in each round
def _seconds(moment: str) -> float | None:
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return None
