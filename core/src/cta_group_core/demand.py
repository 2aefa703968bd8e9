"""What the cluster's pods ask for beside groups, and so what a placement takes from those that come later.

Measured on public traces, what is won over best fit among nodes comes from two things: not leaving groups free on nodes
whose cpu or memory is used up, and keeping GPUs of a scarce model for the pods that insist on it. The pods that are
there now stand for those to come.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from cta_group_core.access_pattern import AccessPattern, disturb
from cta_group_core.moves import Tenant
from cta_group_core.names import LABEL_GPU_PRODUCT
from cta_group_core.scheduling import Load, NodeFacts, PodTerms
from cta_group_core.selectors import Operator, Requirement

NVIDIA_PRODUCT_LABEL: Final = "nvidia.com/gpu.product"
"""Of NVIDIA's GPU feature discovery; its values are other words than ours."""
PRODUCT_LABELS: Final = (LABEL_GPU_PRODUCT, NVIDIA_PRODUCT_LABEL)
"""Labels by which a pod insists on a model."""
_STEPS: Final = 10
_ALL: Final = 1e12
_NEAR: Final = 100


@dataclass(frozen=True)
class Demand:
    """Sums over the pods that are there and the nodes that they may go to."""

    asked: Load = field(default_factory=Load)
    """What all pods that ask for groups ask for together."""
    insisted: Mapping[str, int] = field(default_factory=dict)
    """Groups of pods that insist on one model, by the value of its label."""
    capacity: Mapping[str, int] = field(default_factory=dict)
    """Groups of all GPUs of a model, by our label."""
    patterns: Mapping[tuple[str, str], AccessPattern] = field(default_factory=dict)
    """How pods use their GPU, by namespace and name, of those that say it."""

    def is_near(self, other: "Demand") -> bool:
        """Tell whether nodes rank by both as good as alike: the averages differ by less than a hundredth."""
        mine, its = self.asked, other.asked
        return (
            self.patterns == other.patterns
            and _all_near(self.insisted, other.insisted)
            and _all_near(self.capacity, other.capacity)
            and bool(mine.groups) == bool(its.groups)
            and _is_near(mine.cpu_milli * its.groups, its.cpu_milli * mine.groups)
            and _is_near(mine.memory_bytes * its.groups, its.memory_bytes * mine.groups)
        )

    def disturbed(self, pod: PodTerms, tenants: Iterable[Tenant]) -> int:
        """Return how many tenants of a GPU a pod had better be kept apart from."""
        if pod.pattern is None:
            return 0
        return sum(disturb(pod.pattern, self.patterns.get((one.namespace, one.pod))) for one in tenants)

    def scarcity(self, node: NodeFacts) -> int:
        """Return how much of a node's GPU model is insisted on, in tenths of all there is, at most ten."""
        model = node.labels.get(LABEL_GPU_PRODUCT, "")
        insisted = self.insisted.get(model, 0) + self.insisted.get(node.labels.get(NVIDIA_PRODUCT_LABEL, ""), 0)
        if not insisted or model not in self.capacity:
            return 0
        return min(_STEPS, _STEPS * insisted // self.capacity[model])

    def stranded(self, pod: PodTerms, groups: int, node: NodeFacts, load: Load) -> int:
        """Return how many groups a pod would strand on a node, in units of its own request, rounded.

        Stranded are groups that are left but that cpu or memory does not reach for, at what pods ask for on average.
        Below 0: the pod takes less than the average, and uses groups that others could not.
        """
        (cpu_base, by_cpu), (memory_base, by_memory) = self._reach
        left = node.groups - load.groups
        cpu, memory = node.cpu_milli - load.cpu_milli, node.memory_bytes - load.memory_bytes
        before = max(left - cpu_base - cpu * by_cpu, left - memory_base - memory * by_memory, 0.0)
        cpu, memory, left = cpu - pod.cpu_milli, memory - pod.memory_bytes, left - groups
        after = max(left - cpu_base - cpu * by_cpu, left - memory_base - memory * by_memory, 0.0)
        return round((after - before) / groups)

    @cached_property
    def _reach(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """For cpu and memory, the groups that are always reached, and those more for each thousandth and each byte."""
        asked = self.asked
        return _reach_of(asked.groups, asked.cpu_milli), _reach_of(asked.groups, asked.memory_bytes)


def _is_near(one: int, other: int) -> bool:
    return abs(one - other) * _NEAR <= max(one, other)


def _all_near(some: Mapping[str, int], others: Mapping[str, int]) -> bool:
    return some.keys() == others.keys() and all(_is_near(number, others[key]) for key, number in some.items())


def _reach_of(groups: int, asked: int) -> tuple[float, float]:
    return (0.0, groups / asked) if asked else (_ALL, 0.0)


NO_DEMAND: Final = Demand()


def insisted_model(terms: PodTerms) -> str | None:
    """Return the one GPU model that a pod insists on, as its label's value; None when it takes several or any."""
    for key, value in terms.node_selector:
        if key in PRODUCT_LABELS:
            return value
    named = {_named_by(term.expressions) for term in terms.node_terms or ()}
    return named.pop() if len(named) == 1 else None


def _named_by(expressions: tuple[Requirement, ...]) -> str | None:
    for one in expressions:
        if one.key in PRODUCT_LABELS and one.operator is Operator.IN and len(one.values) == 1:
            return one.values[0]
    return None
