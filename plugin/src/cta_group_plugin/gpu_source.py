"""The driver as the rest of the plugin sees it: questions about the node, about one GPU, and a wait for events."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cta_group_core.ids import GpuUuid
from cta_group_core.links import Closeness
from cta_group_plugin.pod_cgroups import PodOfProcess
from cta_group_plugin.ports import BrokenGpu, GpuEvent, GpuFacts, GpuProcess, Inventory


@dataclass(frozen=True, slots=True)
class Survey:
    """What the driver says about the node as a whole."""

    driver_version: str | None
    cuda_version: str | None
    """``major.minor`` of the newest CUDA that the driver supports."""
    count: int
    """GPUs that it lists, those that do not answer included; their indexes are 0 to ``count`` less one."""
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Vitals:
    """What the driver says about the health of one GPU. ``None``: this GPU or driver does not tell."""

    recovery_action: int | None = None
    """NVML's field 230; 0 asks for nothing."""
    remap_failed: bool | None = None
    """A broken row of memory could not be replaced."""
    double_bit_errors: int | None = None
    """Memory errors since the driver was loaded that could not be corrected."""


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Who uses a GPU now."""

    total_mib: int | None = None
    """As CUDA reports it. ``None``: this GPU or driver does not tell."""
    used_mib: int | None = None
    """Without the driver's own part."""
    processes: tuple[GpuProcess, ...] = ()
    """Compute and graphics processes, MPS clients included, each once."""
    lists_processes: bool = True
    """False: this GPU or driver does not tell which processes compute, so those above are not all of them."""
    lists_clients: bool = True
    """False: it does not tell which of them are clients of MPS."""


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What the host's kernel says about one process."""

    started_ticks: int
    """Clock ticks after the machine's boot: with it a process id is never mistaken for its successor's."""
    name: str
    """As the kernel cuts it, at 15 letters. The process itself can change it."""
    has_ended: bool = False
    """It runs nothing any more and only gives back what it had."""
    pod: PodOfProcess | None = None
    """``None``: it is in no pod."""


class Processes(Protocol):
    """The processes of the host. Every method blocks, shortly."""

    sees_all: bool
    """Whether no process of the machine is out of sight here, so that an id that is not found is of none that lives."""

    def look(self, pids: Iterable[int]) -> Mapping[int, ProcessFacts]:
        """Return what is known of each of these processes; one that cannot be seen, or is gone, is left out."""


class GpuSource(Protocol):
    """The driver. Every method blocks, for long when a GPU is in trouble, so none runs on the event loop.

    Questions are asked by one thread at a time, and :meth:`wait_events` by a second one beside it. Methods raise
    :class:`cta_group_plugin.errors.DriverError` for what the caller must act on: ``DriverGone`` when only a fresh
    process can go on, a plain one for what may work when tried again.
    """

    def open(self) -> None:
        """Load and initialise the driver's library. A node without any GPU is no error. Raises DriverAbsent."""

    def survey(self) -> Survey:
        """Ask for the versions and how many GPUs there are."""

    def read(self, index: int) -> GpuFacts | BrokenGpu:
        """Read every fact of a GPU afresh. One that does not answer is told by its reason."""

    def vitals(self, gpu: GpuUuid) -> Vitals:
        """Ask a GPU something cheap that needs the hardware, and how it is."""

    def use(self, gpu: GpuUuid) -> GpuUse:
        """Ask who uses a GPU; process ids in the caller's namespace."""

    def links(self, gpus: Sequence[GpuUuid]) -> Mapping[frozenset[GpuUuid], Closeness]:
        """Ask how close each two of these GPUs are; a pair of which the driver tells nothing is left out."""

    def wait_events(self, timeout_seconds: float) -> tuple[GpuEvent, ...]:
        """Return the events of the next ``timeout_seconds``; empty when none came."""

    def close(self) -> None:
        """Release the library; safe to call twice."""


def read_inventory(source: GpuSource) -> Inventory:
    """Read all GPUs one after the other, for callers that can wait for each."""
    survey = source.survey()
    return inventory_of(survey, [source.read(index) for index in range(survey.count)])


def inventory_of(survey: Survey, read: Iterable[GpuFacts | BrokenGpu]) -> Inventory:
    """Put what was read of the node and of its GPUs together."""
    read = list(read)
    return Inventory(
        driver_version=survey.driver_version,
        cuda_version=survey.cuda_version,
        gpus=tuple(gpu for gpu in read if isinstance(gpu, GpuFacts)),
        broken=tuple(gpu for gpu in read if isinstance(gpu, BrokenGpu)),
        simulated=survey.simulated,
    )
