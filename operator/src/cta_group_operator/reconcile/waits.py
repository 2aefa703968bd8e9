"""For how long pods wait for nothing but a node, as this process saw it."""

from collections.abc import Iterable

from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock, PodView


class Waits:
    """Begins with the first round that could have placed a pod, and is told when the pod is released."""

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._since: dict[str, float] = {}

    def begin(self, pods: Iterable[PodView]) -> None:
        """Hear of pods that wait; those that are known already go on."""
        now = self._clock.monotonic()
        for pod in pods:
            self._since.setdefault(pod.ref.uid, now)

    def end(self, uid: str, *, released: bool = True) -> None:
        """Hear that a pod does not wait any more, and tell how long it did if the operator has ``released`` it."""
        if (since := self._since.pop(uid, None)) is not None and released:
            self._metrics.placement_seconds.observe(self._clock.monotonic() - since)

    def seconds(self, pod: PodView) -> float:
        """Return for how long a pod waits; 0 for one that is not known to."""
        now = self._clock.monotonic()
        return now - self._since.get(pod.ref.uid, now)

    def clear(self) -> None:
        """Begin anew: another replica may place meanwhile."""
        self._since.clear()
