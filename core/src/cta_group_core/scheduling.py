"""What a pod insists on and what a node offers, apart from groups: the checks that the default scheduler makes too.

They keep placement from choosing a node where the pod can never be bound. Only what is cheap to know and hard to get
wrong is judged here (names, labels, taints, cordon, cpu, memory, number of pods); kube-scheduler checks everything
again and has the last word.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cta_group_core.access_pattern import AccessPattern
from cta_group_core.ids import NodeName
from cta_group_core.selectors import Requirement

TAINT_UNREACHABLE = "node.kubernetes.io/unreachable"
TAINT_NOT_READY = "node.kubernetes.io/not-ready"
TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_IN_WORDS = {TAINT_UNSCHEDULABLE: "cordoned", TAINT_UNREACHABLE: "unreachable", TAINT_NOT_READY: "not ready"}
"""Taints of Kubernetes' own."""
_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's taint. ``effect``: NoSchedule, PreferNoSchedule, NoExecute."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration. An empty key with Exists tolerates every taint; an empty effect, every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Tell whether the taint does not matter to the pod. An operator that is not known here tolerates nothing."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator == "Equal" and bool(self.key) and self.value == taint.value


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of required node affinity; terms are alternatives, the parts of one must all hold."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    """On ``metadata.name``."""

    def holds(self, node: "NodeFacts") -> bool:
        """Tell whether the node satisfies the term; an empty term satisfies nobody, as in Kubernetes."""
        if not (self.expressions or self.fields):
            return False
        named = {"metadata.name": node.name}
        return all(one.holds(node.labels) for one in self.expressions) and all(one.holds(named) for one in self.fields)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node, apart from its groups. cpu in thousandths of a core, memory in bytes, for pods in all."""

    name: NodeName
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    """Cordoned."""
    cpu_milli: int = 0
    memory_bytes: int = 0
    pods: int = 0
    groups: int = 0
    """What kubelet advertises and the scheduler counts; 0 while no plugin is registered with kubelet."""

    @property
    def is_heard_of(self) -> bool:
        """Tell whether Kubernetes hears of the node's kubelet, and that it is well."""
        return not any(taint.key in {TAINT_UNREACHABLE, TAINT_NOT_READY} for taint in self.taints)


@dataclass(frozen=True, slots=True)
class Load:
    """What pods take of a node. Units as in :class:`NodeFacts`."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    pods: int = 0
    groups: int = 0

    def __add__(self, other: "Load") -> "Load":
        return Load(
            self.cpu_milli + other.cpu_milli,
            self.memory_bytes + other.memory_bytes,
            self.pods + other.pods,
            self.groups + other.groups,
        )


@dataclass(frozen=True, slots=True)
class PodTerms:
    """What a pod insists on, apart from groups, and two wishes."""

    node_selector: tuple[tuple[str, str], ...] = ()
    node_terms: tuple[NodeTerm, ...] | None = None
    """Required node affinity; None when there is none."""
    tolerations: tuple[Toleration, ...] = ()
    cpu_milli: int = 0
    memory_bytes: int = 0
    pattern: AccessPattern | None = None
    """How it uses its GPU: nobody is kept waiting for it."""
    needs_clusters: bool = False
    """Its kernels need thread-block clusters: nobody is kept waiting for them either."""

    def load(self, groups: int) -> Load:
        """Return what this one pod, asking for ``groups`` in all, takes of a node."""
        return Load(self.cpu_milli, self.memory_bytes, 1, groups)


def objection(pod: PodTerms, node: NodeFacts, load: Load) -> str | None:
    """Return why ``pod`` can not run on ``node``, which carries ``load`` already; None when nothing forbids it."""
    return names_objection(pod, node) or _taint_objection(pod, node) or room_objection(pod, node, load)


def names_objection(pod: PodTerms, node: NodeFacts) -> str | None:
    """Return what of the pod's node selector and required node affinity the node does not satisfy; None for nothing."""
    for key, value in pod.node_selector:
        if node.labels.get(key) != value:
            return f"node selector {key}={value}"
    if pod.node_terms is not None and not any(term.holds(node) for term in pod.node_terms):
        return "required node affinity"
    return None


def _taint_objection(pod: PodTerms, node: NodeFacts) -> str | None:
    cordon = (Taint(TAINT_UNSCHEDULABLE, "", "NoSchedule"),) if node.unschedulable else ()
    for taint in (*cordon, *node.taints):
        if taint.effect in _BLOCKING_EFFECTS and not any(one.tolerates(taint) for one in pod.tolerations):
            return _IN_WORDS.get(taint.key, f"taint {taint}")
    return None


def room_objection(pod: PodTerms, node: NodeFacts, load: Load) -> str | None:
    """Return what of its number of pods, cpu and memory a node has not left for ``pod``; None for nothing."""
    if load.pods + 1 > node.pods:
        return f"{node.pods} pods, the most it takes"
    if pod.cpu_milli and load.cpu_milli + pod.cpu_milli > node.cpu_milli:
        return f"cpu: {pod.cpu_milli}m asked, {max(0, node.cpu_milli - load.cpu_milli)}m left"
    if pod.memory_bytes and load.memory_bytes + pod.memory_bytes > node.memory_bytes:
        left_mib = max(0, node.memory_bytes - load.memory_bytes) >> 20
        return f"memory: {pod.memory_bytes >> 20} MiB asked, {left_mib} MiB left"
    return None
