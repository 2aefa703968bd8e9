"""What the operator needs from outside, and what it sees there, in the project's own types.

Adapters implement the protocols and make the values out of the API server's JSON; nothing foreign goes through here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from cta_group_core.ids import NodeName
from cta_group_core.names import DEFAULT_SCHEDULER
from cta_group_core.nodes import NodeStatus
from cta_group_core.quota import QuotaSpec, QuotaStatus
from cta_group_core.refusals import Cause
from cta_group_core.rollout import Rollout
from cta_group_core.scheduling import NodeFacts, PodTerms
from cta_group_core.workload import WorkloadStatus
from cta_group_operator.server_metrics import BudgetView

Json = Mapping[str, Any]
"""An object as the API server takes and gives it."""


class Clock(Protocol):
    """Time, so that tests can set it."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""

    def utc_text(self) -> str:
        """Return the time of day in RFC 3339, whole seconds."""


class KubeApi(Protocol):
    """Single calls to the API server. Each raises a subclass of ApiError that says what happened."""

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Return one object, or one page of a list."""

    async def create(self, path: str, body: Json) -> Json:
        """Create in a collection; Conflict when the name is taken."""

    async def update(self, path: str, body: Json) -> Json:
        """Replace an object; Conflict unless its resourceVersion is the one in ``body``."""

    async def merge_patch(self, path: str, body: Json) -> Json:
        """Merge into an object; a resourceVersion in ``body`` makes it conditional (Conflict)."""

    async def json_patch(self, path: str, operations: Sequence[Json]) -> Json:
        """Apply all operations or none; Rejected when a test fails."""

    async def delete(self, path: str, resource_version: str | None = None) -> None:
        """Delete an object, only in that version when one is given (Conflict)."""


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """Which object. ``namespace`` is empty for cluster scope."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class AffinityShape:
    """Which parts of a pod's affinity exist already: a JSON patch must know what it adds to."""

    has_annotations: bool = False
    has_affinity: bool = False
    has_node_affinity: bool = False
    has_preferred: bool = False
    term_fields: tuple[bool | None, ...] = ()
    """For each required node term, whether it has fields; None for an empty one."""


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod that asks for groups, as decisions see it."""

    ref: ObjectRef
    resource_version: str
    requests: tuple[int, ...]
    """Groups of each container that asks."""
    owner: ObjectRef | None = None
    """Its controller."""
    created: str = ""
    priority: int = 0
    evicts: bool = True
    """Whether the scheduler may evict pods of a lower priority for it."""
    phase: str = "Pending"
    deleting: bool = False
    ends: str = ""
    """When it is ended at the latest, RFC 3339; empty while it is not being deleted."""
    node: NodeName | None = None
    gates: tuple[str, ...] = ()
    terms: PodTerms = field(default_factory=PodTerms)
    shape: AffinityShape = field(default_factory=AffinityShape)
    words: str = ""
    """What the scheduler or kubelet says about it; empty when nothing."""
    scheduler: str = DEFAULT_SCHEDULER
    slipped: bool = False
    """Whether it was admitted without the webhook."""
    refused: Cause | None = None
    """Why its kubelet did not give it its groups; None when it did, or when the pod failed for another reason."""
    alignment: str = ""
    """What admission wrote on it about its arguments, where no template is followed that says the same."""
    advice: str = ""
    unschedulable: bool = False
    """The scheduler finds no node for it, and is not about to make room on one by preemption."""
    placed_on: str = ""
    """The nodes that it was released to, as the annotation says: whoever may change the pod may change this too."""
    address: str = ""
    """Its IP address; empty while it has none."""
    budget: BudgetView | None = None
    """By its annotation, where no template is followed that says the same."""

    @property
    def groups(self) -> int:
        """Groups that the pod is charged for."""
        return sum(self.requests)

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended and holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class ControllerView:
    """A Deployment, ReplicaSet, StatefulSet, DaemonSet or Job whose pods ask for groups."""

    ref: ObjectRef
    resource_version: str
    requests: tuple[int, ...]
    owner: ObjectRef | None = None
    wanted: int | None = None
    """Pods it wants now; None where another object decides that."""
    failure: str = ""
    """Why it could not create a pod, in the API server's words."""
    resting: str = ""
    """Why it makes no pods now, by its own word (a Job that is suspended, or has failed); empty when it does."""
    poked: str = ""
    """What the operator wrote when it woke the controller last."""
    rollout: Rollout | None = None
    """How its pods are replaced; None where another object decides that, or where they are not."""
    size: int = 1
    """Pods of the group that each of its pods leads (LeaderWorkerSet)."""
    template: bytes = field(default=b"", repr=False)
    """The pod template, JSON."""
    budget: BudgetView | None = None
    """By its own annotation, else by that of its template."""

    def means_the_same(self, other: "ControllerView") -> bool:
        """Tell whether nothing that is kept of it is another; its status changes with each of its pods."""
        return replace(self, resource_version=other.resource_version) == other


@dataclass(frozen=True, slots=True)
class FailureEvent:
    """An event that says a controller could not create a pod."""

    ref: ObjectRef
    """The event itself."""
    resource_version: str
    about: str
    """uid of the controller."""
    text: str
    last: str
    """When it happened last, RFC 3339."""


@dataclass(frozen=True, slots=True)
class AutoscalerView:
    """A HorizontalPodAutoscaler; KEDA makes one for each of its ScaledObjects."""

    ref: ObjectRef
    resource_version: str
    target_kind: str
    target_name: str
    max_replicas: int

    def means_the_same(self, other: "AutoscalerView") -> bool:
        """Tell whether it bounds the same as before."""
        mine = (self.target_kind, self.target_name, self.max_replicas)
        return mine == (other.target_kind, other.target_name, other.max_replicas)


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node."""

    facts: NodeFacts
    resource_version: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """A namespace; one that is being deleted takes no new objects."""

    name: str
    resource_version: str
    labels: Mapping[str, str]
    deleting: bool = False

    def means_the_same(self, other: "NamespaceView") -> bool:
        """Tell whether decisions are the same for both states."""
        return (self.labels, self.deleting) == (other.labels, other.deleting)


@dataclass(frozen=True, slots=True)
class LimitView:
    """A ResourceQuota that says something about groups. Numbers in groups; None: not said."""

    ref: ObjectRef
    resource_version: str
    quota: str | None
    """Name of the CTAQuota that it belongs to; None for one that people made."""
    hard: int | None
    enforced: int | None
    used: int | None
    ignored_keys: tuple[str, ...] = ()
    """Keys that look as if they limited groups and that Kubernetes ignores."""

    @property
    def held(self) -> int:
        """What it allows, or may allow until Kubernetes enforces the newest limit."""
        return max(self.hard or 0, self.enforced or 0)


@dataclass(frozen=True, slots=True)
class QuotaView:
    """A CTAQuota."""

    ref: ObjectRef
    resource_version: str
    created: str
    generation: int
    spec: QuotaSpec
    status: QuotaStatus


@dataclass(frozen=True, slots=True)
class CtaNodeView:
    """A CTANode."""

    name: NodeName
    resource_version: str
    status: NodeStatus


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """A CTAWorkload. ``owner_uid``: of the object it explains."""

    ref: ObjectRef
    resource_version: str
    owner_uid: str
    status: WorkloadStatus | None
