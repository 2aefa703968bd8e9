"""What the cluster's pods ask for beside groups, counted now and then: it changes slowly and costs a look at each."""

from collections import Counter
from typing import Final

from cta_group_core.demand import NO_DEMAND, Demand, insisted_model
from cta_group_core.names import LABEL_GPU_PRODUCT
from cta_group_core.scheduling import Load
from cta_group_operator.ports import Clock
from cta_group_operator.reconcile.view import ClusterView

FRESH_SECONDS: Final = 5.0


class DemandReader:
    """Counts over the view."""

    def __init__(self, view: ClusterView, clock: Clock) -> None:
        self._view = view
        self._clock = clock
        self._counted = NO_DEMAND
        self._when: float | None = None

    def now(self) -> Demand:
        """Return the demand as it was a moment ago at most."""
        now = self._clock.monotonic()
        if self._when is None or now - self._when >= FRESH_SECONDS:
            self._when, self._counted = now, demand_of(self._view)
        return self._counted


def demand_of(view: ClusterView) -> Demand:
    """Count the pods that have not ended, and the GPUs of nodes that exist."""
    cpu, memory, pods, groups = 0, 0, 0, 0
    insisted = Counter[str]()
    patterns = {}
    for pod in view.pods:
        if pod.is_over:
            continue
        terms = pod.terms
        cpu, memory, pods, groups = cpu + terms.cpu_milli, memory + terms.memory_bytes, pods + 1, groups + pod.groups
        if (model := insisted_model(terms)) is not None:
            insisted[model] += pod.groups
        if terms.pattern is not None:
            patterns[pod.ref.namespace, pod.ref.name] = terms.pattern
    return Demand(Load(cpu, memory, pods, groups), insisted, _capacity(view) if insisted else {}, patterns)


def _capacity(view: ClusterView) -> Counter[str]:
    found = Counter[str]()
    for cta_node in view.cta_nodes:
        if (node := view.machine_of(cta_node)) is not None:
            rooms = view.room_of(cta_node).rooms
            found[node.facts.labels.get(LABEL_GPU_PRODUCT, "")] += sum(room.units.capacity for room in rooms)
    return found
