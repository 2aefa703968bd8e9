"""What the cluster's pods ask for beside groups, summed as they come and go, and told anew now and then only.

Whoever is told another demand ranks every node anew, and a cluster's demand changes slowly.
"""

from collections import Counter
from typing import Final

from cta_group_core.access_pattern import AccessPattern
from cta_group_core.demand import NO_DEMAND, Demand, insisted_model
from cta_group_core.names import LABEL_GPU_PRODUCT
from cta_group_core.scheduling import Load
from cta_group_operator.ports import Clock, PodView
from cta_group_operator.reconcile.view import ClusterView

FRESH_SECONDS: Final = 5.0


class DemandReader:
    """Sums over the pods of the view that have not ended."""

    def __init__(self, view: ClusterView, clock: Clock) -> None:
        self._view = view
        self._clock = clock
        self._told = NO_DEMAND
        self._when: float | None = None
        self._cpu_milli = self._memory_bytes = self._pods = self._groups = 0
        self._insisted = Counter[str]()
        self._patterns: dict[tuple[str, str], AccessPattern] = {}
        for pod in view.pods:
            self._add(pod, 1)
        view.pods.subscribe(self._changed)

    def now(self) -> Demand:
        """Return the demand as it was a moment ago at most; the same object while it is as good as the same."""
        now = self._clock.monotonic()
        if self._when is None or now - self._when >= FRESH_SECONDS:
            self._when, counted = now, self._counted()
            self._told = self._told if counted.is_near(self._told) else counted
        return self._told

    def _counted(self) -> Demand:
        asked = Load(self._cpu_milli, self._memory_bytes, self._pods, self._groups)
        insisted = Counter(self._insisted)
        return Demand(asked, insisted, _capacity(self._view) if insisted else {}, dict(self._patterns))

    def _changed(self, before: PodView | None, after: PodView | None) -> None:
        if before is not None:
            self._add(before, -1)
        if after is not None:
            self._add(after, 1)

    def _add(self, pod: PodView, sign: int) -> None:
        """Count a pod, or with -1 one that was counted no more."""
        if pod.is_over:
            return
        terms = pod.terms
        self._cpu_milli += sign * terms.cpu_milli
        self._memory_bytes += sign * terms.memory_bytes
        self._pods += sign
        self._groups += sign * pod.groups
        if (model := insisted_model(terms)) is not None:
            self._insisted[model] += sign * pod.groups
            if not self._insisted[model]:
                del self._insisted[model]
        if terms.pattern is not None and sign > 0:
            self._patterns[pod.ref.namespace, pod.ref.name] = terms.pattern
        elif terms.pattern is not None:
            self._patterns.pop((pod.ref.namespace, pod.ref.name), None)


def _capacity(view: ClusterView) -> Counter[str]:
    found = Counter[str]()
    for cta_node in view.cta_nodes:
        if (node := view.machine_of(cta_node)) is not None:
            rooms = view.room_of(cta_node).rooms
            found[node.facts.labels.get(LABEL_GPU_PRODUCT, "")] += sum(room.units.capacity for room in rooms)
    return found
