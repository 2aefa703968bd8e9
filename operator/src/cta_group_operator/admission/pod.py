"""The fields of a pod that admission reads, as typed structs: decoding skips all others. Any list may be null."""

from msgspec import Raw, Struct, field

from cta_group_core.vllm.findings import patience_seconds


class Owner(Struct):
    """ownerReferences."""

    uid: str = ""
    controller: bool | None = None


class Metadata(Struct, rename="camel"):
    """metadata."""

    owner_references: list[Owner] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Requirements(Struct):
    """resources of a container."""

    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class Variable(Struct, rename="camel"):
    """env of a container."""

    name: str
    value: str | None = None
    value_from: dict[str, Raw] | None = None
    """Where the value comes from, when it is not in the pod."""


class Port(Struct, rename="camel"):
    """ports of a container."""

    container_port: int = 0


class HttpGet(Struct):
    """httpGet of a probe."""

    path: str = ""


class Probe(Struct, rename="camel"):
    """A probe. The API server fills in its own defaults for what is absent."""

    http_get: HttpGet | None = None
    initial_delay_seconds: int | None = None
    period_seconds: int | None = None
    failure_threshold: int | None = None

    @property
    def patience_seconds(self) -> int:
        """How long a container may fail it from its start on."""
        return patience_seconds(self.initial_delay_seconds, self.period_seconds, self.failure_threshold)


class Container(Struct, rename="camel"):
    """A container."""

    name: str = ""
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[Variable] | None = None
    env_from: list[Raw] | None = None
    ports: list[Port] | None = None
    resources: Requirements | None = None
    startup_probe: Probe | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None


class Gate(Struct):
    """A scheduling gate."""

    name: str


class Expression(Struct):
    """One requirement of node affinity."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeTerm(Struct, rename="camel"):
    """One term of node affinity."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeTerms(Struct, rename="camel"):
    """Terms of node affinity, alternatives to each other."""

    node_selector_terms: list[NodeTerm] | None = None


class NodeAffinity(Struct):
    """affinity.nodeAffinity."""

    required: NodeTerms | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Struct, rename="camel"):
    """affinity."""

    node_affinity: NodeAffinity | None = None


class Spec(Struct, rename="camel"):
    """spec."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    runtime_class_name: str | None = None
    scheduling_gates: list[Gate] | None = None
    scheduler_name: str | None = None


class Pod(Struct):
    """A pod that is being created."""

    metadata: Metadata
    spec: Spec

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations, never None."""
        return self.metadata.annotations or {}

    @property
    def controller_uid(self) -> str:
        """Of whoever makes such pods; empty for a pod that nobody controls."""
        return next((owner.uid for owner in self.metadata.owner_references or () if owner.controller), "")

    @property
    def containers(self) -> list[Container]:
        """Regular containers, never None."""
        return self.spec.containers or []
