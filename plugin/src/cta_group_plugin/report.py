"""CTANode as this process writes it: plain values, and their form in the API.

The types that readers parse an object with are pydantic models (``cta_group_core.nodes``). A node's process never reads
the object, and pydantic would be a fifth of its memory on every node, so the writer has values of its own with the same
field names; a test holds the two and the schema together.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Final, Literal

from cta_group_core.ids import GpuUuid

Truth = Literal["True", "False", "Unknown"]
"""The three values of a condition in Kubernetes."""

HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"
MPS_NOT_READY: Final = "MPSNotReady"
"""The GPU is well, but its MPS daemon serves nobody, so no further share of it is given out."""
HEALTH_STATES: Final = (HEALTHY, "Suspect", UNHEALTHY, "Recovering", MPS_NOT_READY)
"""Every value of a GPU's ``health``."""


class WithheldCause(StrEnum):
    """Why a GPU offers nothing, in one word."""

    EXCLUDED = "excluded"
    """The settings say so."""
    OTHER_PLUGIN = "other-plugin"
    """Another device plugin serves it."""
    MIG = "mig"
    UNSUPPORTED = "unsupported"
    """What it has to offer is not known, or not enough."""


@dataclass(frozen=True, slots=True)
class PcieLink:
    """Width in lanes and generation of a PCIe link, now and at most."""

    width: int
    width_max: int
    generation: int
    generation_max: int


@dataclass(frozen=True, slots=True)
class ConditionReport:
    """One condition in Kubernetes' form."""

    type: str
    status: Truth
    reason: str
    """One word in CamelCase."""
    message: str
    last_transition_time: str | None = None
    """RFC 3339; set before it is written."""


@dataclass(frozen=True, slots=True)
class AllocationReport:
    """What one container holds of one GPU."""

    namespace: str
    pod: str
    container: str
    groups: int
    memory_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """One GPU. One that is not served has capacity 0 and says why in ``withheld``."""

    uuid: str
    index: int
    product: str
    compute_capability: str
    sm_count: int = 0
    capacity: int = 0
    minimum: int = 0
    step: int = 0
    memory_mib: int = 0
    driver_reserved_mib: int | None = None
    reserve_mib: int = 0
    minor: int | None = None
    pci_bus_id: str | None = None
    link: PcieLink | None = None
    numa_node: int | None = None
    copy_engines: int | None = None
    mig_mode: str | None = None
    compute_mode: str | None = None
    persistence_mode: bool | None = None
    foreign_memory_mib: int | None = None
    notice: str | None = None
    health: str = HEALTHY
    health_reason: str | None = None
    health_since: str | None = None
    withheld: str | None = None
    free: int = 0
    largest_fit: int = 0
    allocations: tuple[AllocationReport, ...] = ()

    @property
    def is_placeable(self) -> bool:
        """Tell whether new groups of this GPU may be promised."""
        return self.capacity > 0 and self.withheld is None and self.health == HEALTHY


@dataclass(frozen=True, slots=True)
class EnforcementReport:
    """Which dimensions are limited on this node, and how."""

    compute: bool
    memory: bool
    backend: str = "percentage"
    mode: str = "cooperative"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """The status of a CTANode. The totals are made from the GPUs."""

    resource_name: str
    driver_version: str | None
    cuda_version: str | None
    simulated: bool
    enforcement: EnforcementReport
    conditions: tuple[ConditionReport, ...]
    gpus: tuple[GpuReport, ...]
    confirmed_at: str | None = None
    """When this was so, RFC 3339; set before it is written."""
    capacity: int = field(init=False)
    allocatable: int = field(init=False)
    free: int = field(init=False)
    largest_fit: int = field(init=False)

    def __post_init__(self) -> None:
        placeable = [gpu for gpu in self.gpus if gpu.is_placeable]
        object.__setattr__(self, "capacity", sum(gpu.capacity for gpu in self.gpus))
        object.__setattr__(self, "allocatable", sum(gpu.capacity for gpu in placeable))
        object.__setattr__(self, "free", sum(gpu.free for gpu in placeable))
        object.__setattr__(self, "largest_fit", max((gpu.largest_fit for gpu in placeable), default=0))


def as_api(value: NodeReport) -> Mapping[str, object]:
    """Return the JSON object that the API server stores: camelCase, unknown facts (None) left out."""
    return _object(value)


def _object(value: object) -> dict[str, object]:
    named = ((each.name, getattr(value, each.name)) for each in fields(value))  # type: ignore[arg-type] # a dataclass
    return {api_name(name): _json(each) for name, each in named if each is not None}


def _json(value: object) -> object:
    if is_dataclass(value):
        return _object(value)
    if isinstance(value, tuple):
        return [_json(each) for each in value]
    return value


def api_name(name: str) -> str:
    """Return the name of a field in the API: camelCase, with MiB spelled as the unit is."""
    return re.sub(r"_(.)", lambda found: found[1].upper(), name).replace("Mib", "MiB")


def unknown_uuid(index: int) -> GpuUuid:
    """Return what stands for the UUID of a GPU that never told it."""
    return GpuUuid(f"GPU-unknown-{index}")
