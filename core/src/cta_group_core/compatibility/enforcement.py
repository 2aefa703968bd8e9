"""What each way to limit a slice needs of the driver and the GPU.

Source: NVIDIA, "Multi-Process Service" (docs.nvidia.com/deploy/mps): architecture, environment variables, static SM
partitioning, the v3 interface, and the client limits of its releases.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cta_group_core.compatibility.versions import CudaVersion, DriverVersion
from cta_group_core.units import ComputeCapability


class Backend(StrEnum):
    """How MPS is made to limit a slice."""

    PERCENTAGE = "percentage"
    """A percentage of threads for each client, read when it starts."""
    PARTITIONS = "partitions"
    """Static SM partitions (``nvidia-cuda-mps-control -S``)."""
    NAMESPACES = "namespaces"
    """Namespaces of the v3 interface, each with a ceiling that its clients cannot raise."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The least that a backend works with."""

    capability: ComputeCapability
    driver_release: int | None = None
    """None: every driver that is still supported has it."""
    cuda: CudaVersion | None = None


NEEDS: Final = {
    Backend.PERCENTAGE: Needs(ComputeCapability(7, 0)),
    Backend.PARTITIONS: Needs(ComputeCapability(8, 0), 590, CudaVersion(13, 1)),
    Backend.NAMESPACES: Needs(ComputeCapability(7, 0), 615, CudaVersion(13, 4)),
}
"""Limits by percentage exist from Volta (7.0) on, partitions from Ampere (8.0) on."""

MEMORY_LIMIT_CUDA: Final = CudaVersion(11, 5)
"""First CUDA with ``CUDA_MPS_PINNED_DEVICE_MEM_LIMIT``."""

_CLIENTS: Final = 48
_CLIENTS_LATER: Final = 60
_LATER: Final = CudaVersion(13, 1)


def most_mps_clients(cuda: CudaVersion | None) -> int:
    """Return how many clients one GPU's MPS server takes, from Volta on: 48 up to CUDA 13.0, 60 later.

    Every CUDA process is one, so a container may be several. An unknown CUDA gives the smaller number.
    """
    return _CLIENTS if cuda is None or cuda < _LATER else _CLIENTS_LATER


def missing_of_driver(backend: Backend, driver: DriverVersion | None, cuda: CudaVersion | None) -> tuple[str, ...]:
    """Return what the driver lacks for a backend, in words; empty when nothing is known to be missing."""
    needs = NEEDS[backend]
    missing = []
    if needs.driver_release and driver and driver.release < needs.driver_release:
        missing.append(f"driver R{needs.driver_release} or newer (here R{driver.release})")
    if needs.cuda and cuda and cuda < needs.cuda:
        missing.append(f"CUDA {needs.cuda} or newer in the driver (here {cuda})")
    return tuple(missing)


def missing_of_gpu(backend: Backend, capability: ComputeCapability) -> str:
    """Return what a GPU lacks for a backend, in words; empty when it lacks nothing."""
    least = NEEDS[backend].capability
    return "" if capability >= least else f"compute capability {least} or newer (here {capability})"
