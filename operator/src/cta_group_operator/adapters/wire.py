"""The few fields of Kubernetes objects that decisions read, as typed structs: decoding skips all others.

Every field may be missing or null: bookmarks come with nulls where objects have lists.
"""

from typing import Any

from msgspec import Raw, Struct, field


class OwnerReference(Struct, rename="camel"):
    """metadata.ownerReferences."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None


class Metadata(Struct, rename="camel"):
    """metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class Requirements(Struct):
    """resources of a container."""

    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class Container(Struct, rename="camel"):
    """A container. What is Raw is decoded only where a latency budget needs it."""

    resources: Requirements | None = None
    restart_policy: str | None = None
    name: str = ""
    image: str = ""
    command: Raw = Raw()
    args: Raw = Raw()
    ports: Raw = Raw()
    env: Raw = Raw()
    env_from: Raw = Raw()


class ContainerPort(Struct, rename="camel"):
    """A port of a container."""

    container_port: int = 0


class Variable(Struct, rename="camel"):
    """A variable of a container."""

    name: str
    value: str | None = None
    value_from: dict[str, Raw] | None = None


class NodeRequirement(Struct):
    """An expression or a field of a node term."""

    key: str
    operator: str
    values: list[str] | None = None


class NodeTerm(Struct, rename="camel"):
    """A node selector term."""

    match_expressions: list[NodeRequirement] | None = None
    match_fields: list[NodeRequirement] | None = None


class NodeSelector(Struct, rename="camel"):
    """requiredDuringSchedulingIgnoredDuringExecution."""

    node_selector_terms: list[NodeTerm] | None = None


class NodeAffinity(Struct):
    """affinity.nodeAffinity."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[dict[str, Any]] | None = field(default=None, name="preferredDuringSchedulingIgnoredDuringExecution")


class Affinity(Struct, rename="camel"):
    """affinity."""

    node_affinity: NodeAffinity | None = None


class Toleration(Struct):
    """A toleration."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Gate(Struct):
    """A scheduling gate."""

    name: str


class PodSpec(Struct, rename="camel"):
    """spec of a pod or of a template."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    resources: Requirements | None = None
    """Of the pod as a whole."""
    overhead: dict[str, str] | None = None
    scheduling_gates: list[Gate] | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None


class Condition(Struct):
    """A condition."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None


class Waiting(Struct):
    """state.waiting of a container."""

    reason: str | None = None
    message: str | None = None


class Terminated(Struct, rename="camel"):
    """state.terminated of a container."""

    exit_code: int | None = None


class ContainerState(Struct):
    """state of a container."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, rename="camel"):
    """status of a container."""

    name: str
    ready: bool | None = None
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class PodStatus(Struct, rename="camel"):
    """status of a pod."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    pod_ip: str | None = field(default=None, name="podIP")
    conditions: list[Condition] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    container_statuses: list[ContainerStatus] | None = None
    nominated_node_name: str | None = None


class Pod(Struct):
    """A pod."""

    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class TemplateMetadata(Struct):
    """metadata of a pod template."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Template(Struct):
    """A pod template."""

    metadata: TemplateMetadata | None = None
    spec: PodSpec | None = None


class RollingUpdate(Struct, rename="camel"):
    """rollingUpdate of a strategy."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class Strategy(Struct, rename="camel"):
    """strategy of a Deployment."""

    type: str | None = None
    rolling_update: RollingUpdate | None = None


class ControllerSpec(Struct):
    """spec of a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job."""

    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    strategy: Strategy | None = None
    template: Raw = Raw()
    """Decoded as a :class:`Template`, and by who reads the server in it once more."""


class ControllerStatus(Struct, rename="camel"):
    """status of the same."""

    conditions: list[Condition] | None = None
    desired_number_scheduled: int | None = None
    succeeded: int | None = None
    active: int | None = None


class Controller(Struct):
    """Any object with a pod template."""

    metadata: Metadata
    spec: ControllerSpec | None = None
    status: ControllerStatus | None = None
