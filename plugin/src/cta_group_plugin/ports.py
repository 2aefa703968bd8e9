"""What the plugin needs from the world outside, as small interfaces in the project's own types.

Adapters implement them; the service, the registrar and the publisher know only these. Nothing foreign (NVML handles,
protobuf messages, raw API objects) goes through here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Protocol

from cta_group_core.ids import GpuUuid, GroupId
from cta_group_core.units import ComputeCapability, SmCountSources
from cta_group_plugin.mps_trouble import MpsLoss, MpsTrouble
from cta_group_plugin.report import NodeReport, PcieLink


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What the driver says about one GPU. ``None``: this GPU or driver does not tell."""

    uuid: GpuUuid
    index: int
    product: str
    capability: ComputeCapability
    sm_sources: SmCountSources
    memory_total_mib: int | None
    """As CUDA reports it: NVML's total less its reserved part. ``None`` on unified-memory parts."""
    mig_enabled: bool
    mig_pending: bool
    driver_reserved_mib: int | None = None
    """What the driver keeps of NVML's total; no program can have it."""
    minor: int | None = None
    pci_bus_id: str | None = None
    """In sysfs' form: ``0000:1b:00.0``, lower case."""
    link: PcieLink | None = None
    numa_node: int | None = None
    copy_engines: int | None = None
    compute_mode: str | None = None
    """``Default``, ``ExclusiveProcess``, ``Prohibited``."""
    persistence_mode: bool | None = None
    shares_host_memory: bool = False
    """It has no memory of its own (unified memory)."""


@dataclass(frozen=True, slots=True)
class BrokenGpu:
    """A GPU that the driver lists but that does not answer."""

    index: int
    uuid: GpuUuid | None
    reason: str
    is_lost: bool = False
    """The driver says that it is gone; otherwise it may have failed this once."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """All GPUs of the node at one moment."""

    driver_version: str | None
    cuda_version: str | None
    """``major.minor`` of the newest CUDA that the driver supports."""
    gpus: tuple[GpuFacts, ...]
    broken: tuple[BrokenGpu, ...] = ()
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process on a GPU, in the process-id namespace of the caller."""

    pid: int
    """0 or missing in that namespace: a process of another namespace, as drivers show it."""
    memory_mib: int | None
    is_mps_client: bool = False


class GpuEventKind(Enum):
    """What happened to a GPU."""

    XID = "xid"
    LOST = "lost"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class GpuEvent:
    """One event. ``uuid`` is None when the driver does not say which GPU: every GPU is to be probed then."""

    kind: GpuEventKind
    uuid: GpuUuid | None
    xid: int | None = None
    detail: str = ""


class ComputeMode(StrEnum):
    """Who may make contexts on a GPU, in the driver's own words."""

    DEFAULT = "Default"
    EXCLUSIVE_THREAD = "ExclusiveThread"
    PROHIBITED = "Prohibited"
    EXCLUSIVE_PROCESS = "ExclusiveProcess"


class ComputeModes(Protocol):
    """The compute modes of this node's GPUs. Every method blocks, and may take long when a GPU is in trouble."""

    def get(self, gpu: GpuUuid) -> ComputeMode:
        """Return the mode of a GPU. Raises DriverError."""

    def set(self, gpu: GpuUuid, mode: ComputeMode) -> None:
        """Change it for contexts that are made from now on. Raises DriverError."""


@dataclass(frozen=True, slots=True)
class MpsDemand:
    """How a GPU is used: shared, with its largest share, held or about to be, as the daemon's ceiling; or whole."""

    gpu: GpuUuid
    sm_percent: int
    """100: the SMs are not limited."""
    memory_mib: int
    """0: the memory is not limited."""
    whole: bool = False
    """One tenant has all of it: no daemon, compute mode Default."""


def whole_demand(gpu: GpuUuid) -> MpsDemand:
    """Return the demand of a tenant that has a whole GPU."""
    return MpsDemand(gpu=gpu, sm_percent=100, memory_mib=0, whole=True)


@dataclass(frozen=True, slots=True)
class MpsState:
    """What the MPS daemon of one GPU answered."""

    ready: bool
    """For a shared GPU: it answers and has the demanded limits. For a whole one: there is no daemon in the way."""
    reason: str
    """In words; empty when it is ready."""
    sm_percent: int = 0
    """Ceiling that new clients have now."""
    memory_mib: int = 0
    client_pids: tuple[int, ...] = ()
    """Process ids of its clients, of the host's where the supervisor shares them: who holds groups of this GPU and is
    not among them runs without limits."""
    loss: MpsLoss | None = None
    """The last time that it ended under clients."""
    is_told: bool = True
    """False: the supervisor did not answer, so this says nothing about the GPU."""
    trouble: MpsTrouble | None = None
    """Why it is not ready, as far as the daemon runs and that is the trouble."""

    @property
    def has_fault(self) -> bool:
        """Tell whether its clients are lost although it answers."""
        return self.trouble is MpsTrouble.FAULT


class MpsControl(Protocol):
    """The MPS supervisor of this node."""

    async def sync(self, demands: Sequence[MpsDemand], *, generation: int = 0) -> Mapping[GpuUuid, MpsState]:
        """Ask for one daemon per demand with at least that ceiling; return the state of each.

        ``generation``, ns since boot, is when kubelet took this plugin, 0 before: of two plugins the newer one decides.
        Level-triggered: the call carries everything that is wanted, and may be repeated at any time. A GPU that is
        not named needs no daemon. Never raises for a supervisor that is away: every state says so instead.
        """

    async def close(self) -> None:
        """Release what the connection holds; daemons go on."""


class CdiFolder(Protocol):
    """The folder that the container runtime reads CDI specifications from. Blocks: not for the event loop."""

    def keep(self, specifications: Mapping[str, str]) -> None:
        """Make the files by these names hold these texts, each replaced at once; other files are not touched.

        Raises CdiUnavailable.
        """


@dataclass(frozen=True, slots=True, order=True)
class PodName:
    """A pod, as kubelet names it: without its UID."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Holding:
    """The groups that kubelet has given to one container."""

    pod: PodName
    container: str
    ids: frozenset[GroupId]


@dataclass(frozen=True, slots=True)
class PodDevices:
    """What kubelet has given to one container, by its own record: the only one that names a pod by its UID."""

    pod_uid: str
    container: str
    ids: frozenset[str]
    """As kubelet knows them."""
    gpus: tuple[GpuUuid, ...] = ()
    """The GPUs of these ids, in order of index, as kubelet was answered; empty: it does not say."""


@dataclass(frozen=True, slots=True)
class Account:
    """kubelet's answer to who holds what."""

    holdings: tuple[Holding, ...] = ()
    """Every container that holds groups of our resource, ordinary init containers left out."""
    pods: frozenset[PodName] = frozenset()
    """Every active pod of the node, also those that hold nothing."""
    texts: frozenset[str] = frozenset()
    """Their ids as kubelet writes them."""


class PodResources(Protocol):
    """kubelet's own account of who holds what."""

    async def account(self) -> Account:
        """Ask kubelet. Raises KubeletUnavailable."""

    async def other_devices(self) -> Mapping[str, frozenset[str]]:
        """Ask for the ids of the healthy devices of every resource but ours. Raises KubeletUnavailable."""

    async def close(self) -> None:
        """Release the connection."""


class NodeApi(Protocol):
    """The CTANode object of this node in the Kubernetes API."""

    async def apply(self, status: NodeReport) -> str:
        """Create the object when absent and replace the fields that the plugin owns. Raises ApiUnavailable.

        Returns what a person wrote on it to say that GPUs were repaired; empty when there is nothing.
        """

    async def close(self) -> None:
        """Release the connection."""
