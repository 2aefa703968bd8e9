"""What is wrong with one GPU: its mode, its link, and who else is on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cta_group_core.compatibility.driver_findings import subject_of
from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.nodes import GpuStatus

EXCLUSIVE_PROCESS: Final = "ExclusiveProcess"
PROHIBITED: Final = "Prohibited"
_ENABLED: Final = "Enabled"


@dataclass(frozen=True, slots=True)
class ForeignProcess:
    """A process on a GPU that belongs to no tenant."""

    pid: int
    name: str
    memory_mib: int


def gpu_findings(
    gpu: GpuStatus,
    *,
    exclusive_mode: bool = True,
    mig_pending: str | None = None,
    processes: Sequence[ForeignProcess] = (),
) -> tuple[Finding, ...]:
    """Return what is wrong with a GPU; a fact that it does not tell is no finding.

    ``exclusive_mode``: the node sets the compute mode of shared GPUs. ``mig_pending`` is the mode of the next reset.
    ``processes`` name who holds ``foreign_memory_mib``, where that is known.
    """
    found = (
        *_compute_mode(gpu, exclusive_mode=exclusive_mode),
        *_mig(gpu, mig_pending),
        *_link(gpu),
        *_foreign(gpu, processes),
        *_persistence(gpu),
    )
    return tuple(found)


def _compute_mode(gpu: GpuStatus, *, exclusive_mode: bool) -> Iterator[Finding]:
    shared = any(allocation.groups < gpu.capacity for allocation in gpu.allocations)
    whole = bool(gpu.allocations) and not shared
    if gpu.compute_mode == PROHIBITED:
        yield Finding(
            Severity.ERROR,
            subject_of(gpu),
            "its compute mode is Prohibited: no program can use it",
            f"nvidia-smi -i {gpu.uuid} -c DEFAULT",
        )
    elif gpu.compute_mode == EXCLUSIVE_PROCESS and whole:
        yield Finding(
            Severity.WARNING,
            subject_of(gpu),
            "its compute mode is Exclusive Process while one container has all of it: a second process of that "
            "container fails",
            f"nvidia-smi -i {gpu.uuid} -c DEFAULT",
        )
    elif gpu.compute_mode not in {None, EXCLUSIVE_PROCESS} and shared and exclusive_mode:
        yield Finding(
            Severity.WARNING,
            subject_of(gpu),
            f"it is shared in compute mode {gpu.compute_mode}: a program that does not reach its MPS daemon runs on "
            "the whole GPU, without any limit and without a word",
            f"nvidia-smi -i {gpu.uuid} -c EXCLUSIVE_PROCESS; the MPS supervisor does it when it may",
        )


def _mig(gpu: GpuStatus, pending: str | None) -> Iterator[Finding]:
    enabled = gpu.mig_mode == _ENABLED
    if enabled:
        yield Finding(
            Severity.WARNING,
            subject_of(gpu),
            "MIG is on, so it offers no groups; the node's other GPUs do",
            f"nvidia-smi -i {gpu.uuid} -mig 0 once nothing runs on it, or leave it to another device plugin",
        )
    if pending is not None and gpu.mig_mode is not None and (pending == _ENABLED) is not enabled:
        yield Finding(
            Severity.WARNING,
            subject_of(gpu),
            f"MIG changes to {pending} at the next reset of this GPU; what it offers changes with it",
            f"reset it when nothing runs on it, or nvidia-smi -i {gpu.uuid} -mig {int(enabled)} to keep it as it is",
        )


def _link(gpu: GpuStatus) -> Iterator[Finding]:
    if gpu.link is None:
        return
    width, width_max = gpu.link.width, gpu.link.width_max
    if 0 < width < width_max:
        yield Finding(
            Severity.WARNING,
            subject_of(gpu),
            f"its PCIe link has {width} of {width_max} lanes: models load and tensors move at that fraction of its "
            "speed",
            "look at the slot, the riser and the firmware's settings of lanes; a virtual machine may show this always",
        )
    generation, generation_max = gpu.link.generation, gpu.link.generation_max
    if 0 < generation < generation_max:
        yield Finding(
            Severity.INFO,
            subject_of(gpu),
            f"its PCIe link runs at generation {generation} of {generation_max}; an idle GPU does that to save power",
            "look again under load; if it stays, look at the slot and the firmware's settings",
        )


def _foreign(gpu: GpuStatus, processes: Sequence[ForeignProcess]) -> Iterator[Finding]:
    foreign = gpu.foreign_memory_mib or sum(process.memory_mib for process in processes)
    if not foreign:
        return
    covered = foreign <= gpu.reserve_mib
    effect = (
        f"the {gpu.reserve_mib} MiB that are never given out cover it"
        if covered
        else f"only {gpu.reserve_mib} MiB are kept back, so {foreign - gpu.reserve_mib} MiB of the slices are not there"
    )
    names = ", ".join(f"{process.name} (pid {process.pid}, {process.memory_mib} MiB)" for process in processes)
    yield Finding(
        Severity.INFO if covered else Severity.WARNING,
        subject_of(gpu),
        f"processes that are no tenants use {foreign} MiB of its memory"
        + (f": {names}" if names else "")
        + f"; {effect}",
        "end them (a desktop, a browser, a monitor that uses CUDA), or reserve that much memory more on each GPU",
    )


def _persistence(gpu: GpuStatus) -> Iterator[Finding]:
    if gpu.persistence_mode is False:
        yield Finding(
            Severity.WARNING,
            subject_of(gpu),
            "persistence mode is off: while nothing runs the driver lets go of the GPU, its compute mode is lost, and "
            "the next program waits for it to be initialised",
            "run nvidia-persistenced on the node, or nvidia-smi -pm 1",
        )
