"""As :mod:`cta_group_operator.adapters.wire`, for events, nodes, namespaces and ResourceQuotas."""

from msgspec import Struct

from cta_group_operator.adapters.wire import Metadata


class InvolvedObject(Struct):
    """involvedObject of an event."""

    uid: str | None = None


class Event(Struct, rename="camel"):
    """An event."""

    metadata: Metadata
    involved_object: InvolvedObject | None = None
    message: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None


class Taint(Struct):
    """A taint."""

    key: str
    effect: str
    value: str | None = None


class NodeSpec(Struct):
    """spec of a node."""

    taints: list[Taint] | None = None
    unschedulable: bool | None = None


class NodeStatus(Struct):
    """status of a node."""

    allocatable: dict[str, str] | None = None


class Node(Struct):
    """A node."""

    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class Namespace(Struct):
    """A namespace."""

    metadata: Metadata


class ScaleTarget(Struct, rename="camel"):
    """scaleTargetRef of an autoscaler."""

    kind: str
    name: str
    api_version: str | None = None


class AutoscalerSpec(Struct, rename="camel"):
    """spec of a HorizontalPodAutoscaler."""

    scale_target_ref: ScaleTarget
    max_replicas: int


class Autoscaler(Struct):
    """A HorizontalPodAutoscaler."""

    metadata: Metadata
    spec: AutoscalerSpec | None = None


class ResourceQuotaSpec(Struct):
    """spec of a ResourceQuota."""

    hard: dict[str, str] | None = None


class ResourceQuotaStatus(Struct):
    """status of a ResourceQuota."""

    hard: dict[str, str] | None = None
    used: dict[str, str] | None = None


class ResourceQuota(Struct):
    """A ResourceQuota."""

    metadata: Metadata
    spec: ResourceQuotaSpec | None = None
    status: ResourceQuotaStatus | None = None
