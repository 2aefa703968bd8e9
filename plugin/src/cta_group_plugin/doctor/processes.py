"""Which processes on a GPU are no tenants of ours."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from cta_group_core.compatibility.gpu_findings import ForeignProcess
from cta_group_core.ids import GpuUuid
from cta_group_plugin.ports import GpuProcess, MpsState

_MPS_SERVER: Final = "nvidia-cuda-mps"
"""Start of the name of the MPS server and of its control daemon, as the kernel cuts it at 15 letters."""
UNKNOWN: Final = "a process that cannot be seen from here"


def foreign_processes(
    on_gpus: Mapping[GpuUuid, Sequence[GpuProcess]], mps: Mapping[GpuUuid, MpsState], root: Path
) -> dict[GpuUuid, tuple[ForeignProcess, ...]]:
    """Return the processes that are neither clients of a GPU's MPS daemon nor part of MPS, by GPU.

    Names are those of the host whose root is ``root``; a process of another process-id namespace has none here.
    """
    return {gpu: tuple(_foreign(processes, mps.get(gpu), root)) for gpu, processes in on_gpus.items()}


def _foreign(processes: Sequence[GpuProcess], state: MpsState | None, root: Path) -> Iterator[ForeignProcess]:
    clients = frozenset(state.client_pids) if state else frozenset()
    others = [process for process in processes if not process.is_mps_client and process.pid not in clients]
    named = [ForeignProcess(process.pid, _name(process.pid, root), process.memory_mib or 0) for process in others]
    unseen = sorted((one for one in named if one.name == UNKNOWN), key=lambda one: one.memory_mib)
    # Where a daemon is kept, one of those that cannot be seen is its server, which needs less than any tenant.
    server = unseen[:1] if state is not None else []
    yield from (one for one in named if one not in server and not one.name.startswith(_MPS_SERVER))


def _name(pid: int, root: Path) -> str:
    try:
        return (root / f"proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return UNKNOWN
