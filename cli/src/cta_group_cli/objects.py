"""The few fields of Kubernetes' own objects that explanations read, parsed where they enter the program."""

from typing import Any

from pydantic import Field

from cta_group_core.nodes import ApiModel


class Owner(ApiModel):
    """A reference to an owner; the one with ``controller`` makes the object and makes it again."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool = False


class Metadata(ApiModel):
    """Who an object is."""

    name: str
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    """When its grace ends; empty while it is not being deleted."""
    owner_references: tuple[Owner, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def controller(self) -> Owner | None:
        """The owner that makes this object."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class ObjectCondition(ApiModel):
    """A condition of a built-in kind; not all of them give a reason."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class Resources(ApiModel):
    """Amounts by resource name, as quantities. An extended resource has the same in both, or limits alone."""

    limits: dict[str, str] = Field(default_factory=dict)
    requests: dict[str, str] = Field(default_factory=dict)


class Variable(ApiModel):
    """A variable of a container; its value, or where that comes from."""

    name: str
    value: str = ""
    value_from: dict[str, Any] | None = None


class Container(ApiModel):
    """A container of a pod or of a template."""

    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    env_from: tuple[dict[str, Any], ...] = ()
    resources: Resources = Resources()
    restart_policy: str = ""
    """Of an init container: Always for a sidecar, which runs beside the others."""


class Gate(ApiModel):
    """A scheduling gate."""

    name: str


class PodSpec(ApiModel):
    """What a pod asks for."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    scheduling_gates: tuple[Gate, ...] = ()
    node_name: str = ""
    runtime_class_name: str = ""


class StateDetail(ApiModel):
    """Why a container waits or ended."""

    reason: str = ""
    message: str = ""


class Ending(StateDetail):
    """How a container ended."""

    exit_code: int = 0


class ContainerState(ApiModel):
    """At most one of the states is there."""

    waiting: StateDetail | None = None
    terminated: Ending | None = None


class ContainerStatus(ApiModel):
    """What a container does."""

    name: str
    ready: bool = False
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(ApiModel):
    """What a pod does. ``reason`` and ``message`` are kubelet's when it refused or ended the pod."""

    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: tuple[ObjectCondition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(ApiModel):
    """A pod."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(ApiModel):
    """What a controller makes pods from."""

    spec: PodSpec = PodSpec()


class JobSpec(ApiModel):
    """spec of a Job."""

    template: PodTemplate | None = None


class JobTemplate(ApiModel):
    """What a CronJob makes Jobs from."""

    spec: JobSpec = JobSpec()


class GroupTemplate(ApiModel):
    """What a LeaderWorkerSet makes each of its groups from."""

    size: int = 1
    worker_template: PodTemplate | None = None


class ControllerSpec(ApiModel):
    """How many pods a controller wants; some kinds say it in other words than the rest."""

    replicas: int | None = None
    parallelism: int | None = None
    """Of a Job, which always has it."""
    completions: int | None = None
    suspend: bool = False
    template: PodTemplate | None = None
    job_template: JobTemplate | None = None
    leader_worker_template: GroupTemplate | None = None

    @property
    def pod_template(self) -> PodTemplate | None:
        """What its pods are made from, wherever the kind has it; the workers' for a LeaderWorkerSet."""
        if self.job_template is not None:
            return self.job_template.spec.template
        if self.leader_worker_template is not None:
            return self.leader_worker_template.worker_template
        return self.template

    @property
    def wanted(self) -> int:
        """Pods that it wants now; 0 for a CronJob, whose Jobs want them. A Job's status has a say too."""
        if self.job_template is not None:
            return 0
        said = 1 if self.replicas is None else self.replicas
        return said * (1 if self.leader_worker_template is None else self.leader_worker_template.size)


class ControllerStatus(ApiModel):
    """What a controller tells."""

    conditions: tuple[ObjectCondition, ...] = ()
    desired_number_scheduled: int | None = None
    """Of a DaemonSet: one pod for each node that it is for."""
    succeeded: int = 0
    active: int = 0
    """Pods of a Job that ended well, and that have not ended."""


class Controller(ApiModel):
    """Anything that makes pods."""

    metadata: Metadata
    spec: ControllerSpec = ControllerSpec()
    status: ControllerStatus = ControllerStatus()


class EventObject(ApiModel):
    """What an event is about."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class Event(ApiModel):
    """An event. Which of the times is there depends on who wrote it."""

    involved_object: EventObject = EventObject()
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def moment(self) -> str:
        """When it was seen last, for ordering."""
        return self.last_timestamp or self.event_time or ""
