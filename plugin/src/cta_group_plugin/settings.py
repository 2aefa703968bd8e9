"""Settings of both commands, typed and frozen. They enter once, in :mod:`cta_group_plugin.cli`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from cta_group_core.health.state import HealthRules
from cta_group_core.ids import IdForm
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_core.rooms import SharePolicy
from cta_group_core.slices import DEFAULT_RESERVE_MIB
from cta_group_plugin.gpu_choice import EVERY_GPU, GpuChoice
from cta_group_plugin.logs import LogFormat

SUPERVISOR_SOCKET_NAME: Final = "supervisor.sock"
"""Socket of the MPS supervisor, in the MPS folder of the node."""


class SourceKind(StrEnum):
    """Where the facts about GPUs come from."""

    NVML = "nvml"
    SIMULATED = "simulated"


class ComputeModeUse(StrEnum):
    """What the supervisor does with the compute modes of the GPUs."""

    EXCLUSIVE = "exclusive"
    """EXCLUSIVE_PROCESS while a GPU is shared, so that a client that misses its daemon is refused."""
    UNTOUCHED = "untouched"
    """Nothing, but to restore what was changed before."""


class DeviceList(StrEnum):
    """How a container is given its slice."""

    ENVVAR = "envvar"
    """By environment variables, for the NVIDIA runtime. The pod's own variables would win over them."""
    CDI = "cdi"
    """By CDI devices, whose edits win over the pod's own variables."""


class Topology(StrEnum):
    """What kubelet is told of where the GPUs are."""

    NONE = "none"
    """Nothing: the plugin alone chooses the groups."""
    NUMA = "numa"
    """The NUMA node of each GPU, for kubelet's topology manager, which then decides on the node before the plugin is
    asked, and takes all that is free there when a request needs that much or more."""


@dataclass(frozen=True, slots=True)
class CdiSettings:
    """Where CDI specifications are written, and how their devices bring the GPU."""

    folder: Path = Path("/var/run/cdi")
    """One of the folders that the container runtime reads (its default: /etc/cdi and /var/run/cdi)."""
    gpu_kind: str = "nvidia.com/gpu"
    """Kind of the CDI devices that the container toolkit describes, named by UUID: they bring the device files and the
    driver's libraries. Empty: our own devices bring the device files."""


@dataclass(frozen=True, slots=True)
class EnforcementSettings:
    """Which dimension of a slice the driver enforces. Both off: time slicing with accounting only, no MPS."""

    compute: bool = True
    """Limit the SMs of a container that holds a fraction of a GPU."""
    memory: bool = True
    """Limit its memory."""
    mode: SharePolicy = SharePolicy.COOPERATIVE
    """Which shares may be on one GPU at the same time."""

    @property
    def uses_mps(self) -> bool:
        """Tell whether a fraction of a GPU needs an MPS daemon at all."""
        return self.compute or self.memory


@dataclass(frozen=True, slots=True)
class HealthSettings:
    """How the health of the GPUs is followed."""

    rules: HealthRules = field(default_factory=HealthRules)
    """What is done about each XID, and how many polls a GPU must answer in a row before it is healthy again."""
    poll_seconds: float = 10.0
    """How often each GPU is asked; what its events tell comes at once."""
    answer_seconds: float = 10.0
    """How long one question to the driver may take before its thread is left to it."""
    state_dir: Path | None = Path("/var/lib/cta-group")
    """Folder of the host for what must outlive this process. ``None``: nothing does."""
    processes_dir: Path | None = Path("/proc")
    """The proc file system of the process-id namespace in which the driver names processes, the host's. ``None``: this
    process does not share it, so who is on a GPU cannot be told."""
    late_memory_seconds: float = 60.0
    """How long memory of an ended process may be late before its GPU is suspect; containers wait meanwhile."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Everything that ``cta-group-plugin run`` can be told."""

    node_name: str
    """Name of the Kubernetes node, which is also the name of its CTANode."""
    resource_name: str = DEFAULT_RESOURCE_NAME
    device_plugin_dir: Path = Path("/var/lib/kubelet/device-plugins")
    """Folder with ``kubelet.sock``; the plugin's own sockets are made beside it."""
    pod_resources_socket: Path = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
    source: SourceKind = SourceKind.NVML
    profile: str = "h100-sxm"
    """Product of the simulated GPUs."""
    count: int = 8
    """How many GPUs are simulated."""
    driver_root: Path | None = None
    """Folder with the driver where it is in none of the usual places."""
    mps_root: Path = Path("/run/cta-group/mps")
    """Folder on the host with one folder for each GPU's MPS daemon; mounted into containers at the same path."""
    mps_socket: Path | None = None
    """Socket of the MPS supervisor. ``None``: the supervisor is simulated inside this process."""
    reserve_mib: int = DEFAULT_RESERVE_MIB
    """Memory of each GPU that is never given out, MiB."""
    choice: GpuChoice = EVERY_GPU
    """Which GPUs are served, and what is so about them whatever the driver says."""
    max_clients: int = 0
    """Containers on one GPU at most. 0: as many as the MPS server takes clients, 48 up to CUDA 13.0 and 60 later."""
    enforcement: EnforcementSettings = EnforcementSettings()
    device_ids: IdForm = IdForm.UUID
    """How groups are written for kubelet, unless it knows them by the other form already."""
    topology: Topology = Topology.NONE
    device_list: DeviceList = DeviceList.ENVVAR
    cdi: CdiSettings = CdiSettings()
    """Used with ``DeviceList.CDI`` only."""
    health: HealthSettings = field(default_factory=HealthSettings)
    start_patience_seconds: int = 20
    """How long a container start waits for its limits before kubelet is told to ask again; kubelet waits 30."""
    drain_seconds: float = 3.0
    """How long kubelet is still served after it was published that the plugin stops: a write a second at most, the
    operator's decisions meanwhile, and the way of a pod to kubelet."""
    metrics_address: str = "0.0.0.0:9400"
    """``host:port`` of /metrics, /healthz and /readyz; empty: not served."""
    publish: bool = True
    """Write CTANode to the Kubernetes API."""
    api_server: str = ""
    """URL of the Kubernetes API; empty: not known."""
    service_account_dir: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    """Folder with the token and the certificate authority (``token``, ``ca.crt``) for the API."""
    log_level: str = "info"
    log_format: LogFormat = "text"


@dataclass(frozen=True, slots=True)
class MpsSettings:
    """Everything that ``cta-group-plugin mps`` can be told."""

    mps_root: Path = Path("/run/cta-group/mps")
    """Folder on the host with one folder for each GPU's MPS daemon."""
    mps_socket: Path = Path("/run/cta-group/mps") / SUPERVISOR_SOCKET_NAME
    """Socket that the supervisor serves."""
    control_binary: str = "nvidia-cuda-mps-control"
    driver_root: Path | None = None
    """Folder with the driver where it is in none of the usual places; it is only read."""
    cgroup_root: Path | None = None
    """Where the host's cgroups are visible. ``None``: daemons stay in the supervisor's and end with its container."""
    compute_mode: ComputeModeUse = ComputeModeUse.EXCLUSIVE
    simulated: bool = False
    """Run the simulated control daemon of this project instead of NVIDIA's."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What daemons inherit of this process' environment: where programs and libraries are."""
    metrics_address: str = "0.0.0.0:9401"
    """``host:port`` of /metrics, /healthz and /readyz; empty: not served."""
    log_level: str = "info"
    log_format: LogFormat = "text"
