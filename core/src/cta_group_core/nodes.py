"""CTANode: what a node's plugin publishes and everything else reads. The schema is ``crds/``; these are its types.

Text from the API server is parsed here, so an object written by an older or newer plugin gives an error that names the
field; unknown fields are ignored, so that parts can be upgraded one after the other.
"""

from enum import StrEnum
from functools import lru_cache
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from cta_group_core.bounded import Text
from cta_group_core.errors import ContradictoryGpu
from cta_group_core.ids import GpuUuid, parse_gpu_uuid
from cta_group_core.names import CONDITION_REGISTERED
from cta_group_core.rooms import GpuRoom, SharePolicy, largest_fit
from cta_group_core.units import GpuUnits


def api_name(field: str) -> str:
    """Return the name of a field in the API: camel case, with MiB and UID spelled as everywhere."""
    return to_camel(field).replace("Mib", "MiB").replace("Uid", "UID")


class ApiModel(BaseModel):
    """A frozen piece of one of the project's objects, camelCase on the wire."""

    model_config = ConfigDict(frozen=True, alias_generator=api_name, populate_by_name=True, extra="ignore")

    def as_api(self) -> dict[str, object]:
        """Return the JSON object that the API server stores; fields that are unknown (None) are left out."""
        return self.model_dump(by_alias=True, exclude_none=True, mode="json")

    def as_merge_patch(self) -> dict[str, object]:
        """Return the JSON merge patch (RFC 7386) that makes a stored object this one: what is None is taken away."""
        whole = self.as_api()
        for name in type(self).model_fields:
            key, value = api_name(name), getattr(self, name)
            if value is None:
                whole[key] = None
            elif isinstance(value, ApiModel):
                whole[key] = value.as_merge_patch()
        return whole


class ConditionStatus(StrEnum):
    """Kubernetes' three values of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(ApiModel):
    """One condition in Kubernetes' form. ``reason`` is one CamelCase word, ``message`` a sentence."""

    type: str
    status: ConditionStatus
    reason: str
    message: Text = ""
    last_transition_time: str | None = None
    """RFC 3339, set when ``status`` changed."""


class GpuHealth(StrEnum):
    """Whether groups of a GPU may be handed out: only of a healthy one."""

    HEALTHY = "Healthy"
    SUSPECT = "Suspect"
    """In quarantine until it is known whether it is well."""
    UNHEALTHY = "Unhealthy"
    RECOVERING = "Recovering"
    """Repaired, and being watched."""
    MPS_NOT_READY = "MPSNotReady"
    """It is well, but its MPS daemon serves nobody, so no further share of it can be limited."""


class PcieLink(ApiModel):
    """Width in lanes and generation of a PCIe link, now and at most."""

    width: int
    width_max: int
    generation: int
    generation_max: int


@lru_cache(maxsize=256)
def _units(sm_count: int, capacity: int, minimum: int, step: int) -> GpuUnits:
    """Return the same value for equal GPUs: a decision compares those of a whole cluster, and identity is quick."""
    return GpuUnits(sm_count=sm_count, capacity=capacity, minimum=minimum, step=step)


class Allocation(ApiModel):
    """What one container holds of one GPU."""

    namespace: str
    pod: str
    container: str
    groups: int
    memory_mib: int


class GpuStatus(ApiModel):
    """Facts, health and holders of one GPU. A GPU that is not served has capacity 0 and says why in ``withheld``.

    The numbers of a GPU with capacity are checked when the value is built: the rules can use them as they are.
    """

    uuid: str
    index: int
    product: str
    compute_capability: str
    sm_count: int = 0
    capacity: int = 0
    minimum: int = 0
    step: int = 0
    memory_mib: int = Field(default=0, description="Memory as CUDA reports it")
    driver_reserved_mib: int | None = Field(default=None, description="Kept by the driver beside that")
    reserve_mib: int = Field(default=0, description="Memory that is never given out")
    minor: int | None = None
    pci_bus_id: str | None = None
    link: PcieLink | None = None
    numa_node: int | None = None
    copy_engines: int | None = None
    mig_mode: str | None = None
    compute_mode: str | None = None
    persistence_mode: bool | None = None
    foreign_memory_mib: int | None = Field(default=None, description="Used by processes that are not tenants")
    notice: str | None = Field(default=None, description="Worth knowing of a GPU that goes on")
    health: GpuHealth = GpuHealth.HEALTHY
    health_reason: str | None = None
    health_since: str | None = None
    withheld: str | None = Field(default=None, description="Why this GPU offers no groups")
    free: int = 0
    largest_fit: int = 0
    allocations: tuple[Allocation, ...] = ()

    @model_validator(mode="after")
    def _numbers_agree(self) -> Self:
        if self.capacity:
            self.room()
        elif self.free or self.largest_fit:
            raise ContradictoryGpu(f"{self.uuid}: {self.free} groups cannot be free of a capacity of 0")
        return self

    @property
    def is_placeable(self) -> bool:
        """Tell whether new groups of this GPU may be promised."""
        return self.capacity > 0 and self.withheld is None and self.health is GpuHealth.HEALTHY

    def room(self, policy: SharePolicy = SharePolicy.COOPERATIVE) -> GpuRoom:
        """Return this GPU as the placement rule sees it, its health aside; call it for a GPU with capacity only."""
        strict = policy is SharePolicy.STRICT_UNIFORM
        shares = frozenset(held.groups for held in self.allocations) if strict else None
        units = _units(self.sm_count, self.capacity, self.minimum, self.step)
        return GpuRoom(uuid=self.gpu_uuid, index=self.index, units=units, free=self.free, shares=shares)

    @property
    def gpu_uuid(self) -> GpuUuid:
        """The UUID as the rules use it."""
        return parse_gpu_uuid(self.uuid)


class Enforcement(ApiModel):
    """Which dimensions are limited on this node, and how."""

    backend: str = "percentage"
    mode: str = SharePolicy.COOPERATIVE.value
    compute: bool = True
    memory: bool = True

    @property
    def policy(self) -> SharePolicy:
        """The mode as the placement rule knows it; one of a newer plugin that is not known here restricts nothing."""
        known = {policy.value: policy for policy in SharePolicy}
        return known.get(self.mode, SharePolicy.COOPERATIVE)


class NodeStatus(ApiModel):
    """Status of a CTANode, written by the node's plugin alone."""

    resource_name: str
    node_uid: str | None = None
    """Of the Node that this was written for; a Node of the same name with another uid is another machine."""
    confirmed_at: str | None = None
    """When the plugin last said that this is so, RFC 3339; a plugin of an earlier version does not say."""
    driver_version: str | None = None
    cuda_version: str | None = None
    simulated: bool = False
    enforcement: Enforcement = Enforcement()
    capacity: int = 0
    allocatable: int = 0
    free: int = 0
    largest_fit: int = 0
    conditions: tuple[Condition, ...] = ()
    gpus: tuple[GpuStatus, ...] = ()

    @model_validator(mode="after")
    def _gpus_are_several(self) -> Self:
        """Refuse what no rule can use: a GPU that offers or has given groups needs a UUID, and of its own."""
        named = [gpu.gpu_uuid for gpu in self.gpus if gpu.capacity or gpu.allocations]
        if twice := sorted({uuid for uuid in named if named.count(uuid) > 1}):
            raise ContradictoryGpu(f"{twice[0]}: {named.count(twice[0])} GPUs of one node cannot have the same UUID")
        return self

    @property
    def registration_problem(self) -> str:
        """Why kubelet does not know the plugin now; empty when it does, or when nothing is said about that."""
        told = (one for one in self.conditions if one.type == CONDITION_REGISTERED)
        return next((one.message or one.reason for one in told if one.status is ConditionStatus.FALSE), "")

    def is_of(self, node_uid: str) -> bool:
        """Tell whether this speaks of the Node with that uid; a plugin of an earlier version does not say of which."""
        return self.node_uid in {None, node_uid}

    def says_the_same(self, other: "NodeStatus") -> bool:
        """Tell whether both say the same of the node, if at other times."""
        return self.model_copy(update={"confirmed_at": other.confirmed_at}) == other

    def rooms(self) -> list[GpuRoom]:
        """Return the GPUs that new groups can be promised on."""
        policy = self.enforcement.policy
        return [gpu.room(policy) for gpu in self.gpus if gpu.is_placeable]

    def with_totals(self) -> Self:
        """Return this status with the node's totals made from its GPUs, so that they can never contradict."""
        rooms = self.rooms()
        return self.model_copy(
            update={
                "capacity": sum(gpu.capacity for gpu in self.gpus),
                "allocatable": sum(room.units.capacity for room in rooms),
                "free": sum(room.free for room in rooms),
                "largest_fit": largest_fit(rooms),
            }
        )
