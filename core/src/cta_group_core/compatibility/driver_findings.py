"""What is wrong with a driver, and with the way in which it is asked to limit slices.

A node's plugin asks this about itself and ``doctor`` about a CTANode, each with types of its own, so what is looked at
is named by protocols.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from cta_group_core.compatibility.enforcement import (
    MEMORY_LIMIT_CUDA,
    Backend,
    missing_of_driver,
    missing_of_gpu,
    most_mps_clients,
)
from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.compatibility.versions import CudaVersion, DriverVersion, parsed_or_none
from cta_group_core.errors import InvalidText
from cta_group_core.units import ComputeCapability

_DRIVER: Final = "driver"
_ENFORCEMENT: Final = "enforcement"

_FIRST_WITH_RESERVED_MEMORY: Final = 525
"""NVML's second form of the memory question, which tells the driver's own part, came with R525."""
_FIRST_WITH_RECOVERY_ACTION: Final = 570


class NamedGpu(Protocol):
    """What findings name a GPU by."""

    @property
    def uuid(self) -> str:
        """The driver's name of it."""

    @property
    def index(self) -> int:
        """Its place in the driver's order."""


class LimitedGpu(NamedGpu, Protocol):
    """A GPU whose slices are to be limited."""

    @property
    def compute_capability(self) -> str:
        """``major.minor``."""

    @property
    def capacity(self) -> int:
        """Groups that it offers; 0 when it is not served."""


class Limits(Protocol):
    """Which dimensions are limited, and by what."""

    @property
    def compute(self) -> bool:
        """The SMs of slices are."""

    @property
    def memory(self) -> bool:
        """Their memory is."""

    @property
    def backend(self) -> str:
        """What limits the SMs; one of :class:`Backend` as far as is known here."""


def driver_findings(driver_version: str | None) -> tuple[Finding, ...]:
    """Return what is wrong with the driver; ``None`` is one that does not answer."""
    if driver_version is None:
        return (_no_driver(),)
    try:
        release = DriverVersion.parse(driver_version).release
    except InvalidText as problem:
        return (
            Finding(
                Severity.WARNING,
                _DRIVER,
                f"{problem}, so nothing that depends on the driver's version was checked",
                "report the version as a defect of this project, with the driver's package",
            ),
        )
    return tuple(_of_release(release))


def _no_driver() -> Finding:
    return Finding(
        Severity.ERROR,
        _DRIVER,
        "no NVIDIA driver answers, so this node offers no groups",
        "install the driver, and give the plugin's container the driver's libraries (runtime class nvidia); a node "
        "without GPUs needs nothing",
    )


def _of_release(release: int) -> Iterator[Finding]:
    if release < _FIRST_WITH_RESERVED_MEMORY:
        yield Finding(
            Severity.ERROR,
            _DRIVER,
            f"R{release} does not tell how much of a GPU's memory programs can use, so no slice can be sized",
            f"install R{_FIRST_WITH_RESERVED_MEMORY} or newer",
        )
    elif release < _FIRST_WITH_RECOVERY_ACTION:
        yield Finding(
            Severity.INFO,
            _DRIVER,
            f"R{release} does not tell which repair a GPU needs, so a GPU that was reset by nvidia-smi stays out",
            f"install R{_FIRST_WITH_RECOVERY_ACTION} or newer; until then restart the node after a fatal XID",
        )


def enforcement_findings(
    enforcement: Limits,
    *,
    driver: DriverVersion | None,
    cuda: CudaVersion | None,
    gpus: Iterable[LimitedGpu],
    max_clients: int | None = None,
) -> tuple[Finding, ...]:
    """Return what keeps the limits of slices from holding. ``max_clients`` is the setting, where it is known."""
    return (
        *_switched_off(enforcement),
        *_of_backend(enforcement, driver, cuda, gpus),
        *_of_memory(enforcement, cuda),
        *_of_clients(max_clients, cuda),
    )


def _switched_off(enforcement: Limits) -> Iterator[Finding]:
    for name, limited in (("compute", enforcement.compute), ("memory", enforcement.memory)):
        if not limited:
            yield Finding(
                Severity.INFO,
                _ENFORCEMENT,
                f"the {name} of slices is not limited on this node: a tenant may use all of a GPU's",
                f"set enforcement.{name} to true again once what was looked for is found",
            )


def _of_backend(
    enforcement: Limits, driver: DriverVersion | None, cuda: CudaVersion | None, gpus: Iterable[LimitedGpu]
) -> Iterator[Finding]:
    if not enforcement.compute:
        return
    if enforcement.backend not in list(Backend):
        allowed = ", ".join(Backend)
        sentence = f"backend {enforcement.backend!r} is not known; known: {allowed}"
        yield Finding(Severity.ERROR, _ENFORCEMENT, sentence, "set the backend to percentage")
        return
    backend = Backend(enforcement.backend)
    if missing := missing_of_driver(backend, driver, cuda):
        sentence = f"backend {backend} cannot limit slices here; it needs {' and '.join(missing)}"
        yield Finding(Severity.ERROR, _ENFORCEMENT, sentence, "install a newer driver, or use backend percentage")
    for gpu in gpus:
        capability = parsed_or_none(ComputeCapability.parse, gpu.compute_capability)
        if gpu.capacity and capability and (lacks := missing_of_gpu(backend, capability)):
            yield Finding(
                Severity.ERROR,
                subject_of(gpu),
                f"backend {backend} cannot limit slices of this GPU; it needs {lacks}",
                "leave this GPU out (gpus.exclude), or hand it out whole only",
            )


def _of_memory(enforcement: Limits, cuda: CudaVersion | None) -> Iterator[Finding]:
    if enforcement.memory and cuda and cuda < MEMORY_LIMIT_CUDA:
        yield Finding(
            Severity.ERROR,
            _ENFORCEMENT,
            f"the memory of slices is not limited: that needs CUDA {MEMORY_LIMIT_CUDA} in the driver (here {cuda})",
            "install a newer driver",
        )


def _of_clients(max_clients: int | None, cuda: CudaVersion | None) -> Iterator[Finding]:
    most = most_mps_clients(cuda)
    if max_clients is not None and max_clients > most:
        told = f"with CUDA {cuda}" if cuda else "as far as is known"
        yield Finding(
            Severity.WARNING,
            _ENFORCEMENT,
            f"up to {max_clients} containers may share a GPU, but its MPS server takes {most} clients {told}; the "
            "next one fails with 'device busy or unavailable'",
            f"set the limit of clients to {most} or less, and less where a container runs several CUDA processes",
        )


def subject_of(gpu: NamedGpu) -> str:
    """Return how findings name a GPU."""
    return f"GPU {gpu.index} ({gpu.uuid})"
