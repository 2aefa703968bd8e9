"""Reads from NVML how one GPU is and who uses it."""

from functools import partial
from typing import Any, Final

import pynvml

from cta_group_plugin.adapters.nvml_errors import told
from cta_group_plugin.gpu_source import GpuUse, Vitals
from cta_group_plugin.ports import GpuProcess

_BYTES_PER_MIB: Final = 1 << 20
_RECOVERY_ACTION: Final = 230
"""NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, from R570 on. Fields 226 and 227 are what early headers called it."""


def read_vitals(handle: Any) -> Vitals:
    """Return the health of a GPU. Raises NVMLError when it fails a question that needs the hardware."""
    told(lambda: pynvml.nvmlDeviceGetPerformanceState(handle))
    # The name without a version: the second form (R590) adds nothing that is needed here.
    rows = told(lambda: pynvml.nvmlDeviceGetRemappedRows(handle))
    return Vitals(
        recovery_action=read_recovery_action(handle),
        remap_failed=None if rows is None else bool(rows[3]),
        double_bit_errors=told(lambda: _double_bit_errors(handle)),
    )


def read_recovery_action(handle: Any) -> int | None:
    """Return what the driver asks for, None where it does not have the field. The call works, each field may not."""
    fields = told(lambda: pynvml.nvmlDeviceGetFieldValues(handle, [_RECOVERY_ACTION]))
    if fields is None or fields[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return None
    return int(fields[0].value.uiVal)


def _double_bit_errors(handle: Any) -> int:
    # Since the driver was loaded, so that a new count is news; the count of the board's whole life is not.
    uncorrected, volatile = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    return int(pynvml.nvmlDeviceGetTotalEccErrors(handle, uncorrected, volatile))


def read_use(handle: Any) -> GpuUse:
    """Return the memory in use and the processes. Raises NVMLError."""
    # Memory first: what a program takes between the two answers is among its own then, and nobody is missed for it.
    memory = told(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2))
    lists = _process_lists(handle)
    return GpuUse(
        total_mib=None if memory is None else (memory.total - memory.reserved) // _BYTES_PER_MIB,
        used_mib=None if memory is None else memory.used // _BYTES_PER_MIB,
        processes=_each_once(lists),
        lists_processes=lists[_COMPUTE] is not None,
        lists_clients=lists[_MPS] is not None,
    )


def read_processes(handle: Any) -> tuple[GpuProcess, ...]:
    """Return the compute and graphics processes and the MPS clients, each once, by process id."""
    return _each_once(_process_lists(handle))


_GRAPHICS, _COMPUTE, _MPS = range(3)
"""The clients of MPS come last: where a process is in two lists, that it is a client is what counts."""


def _process_lists(handle: Any) -> list[Any]:
    """Return the driver's lists in the order above; None for one that it does not tell."""
    # With the version in the name: without it, the binding raises an error of another tree for a driver that is older.
    calls = (
        pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
        pynvml.nvmlDeviceGetComputeRunningProcesses_v3,
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
    )
    return [told(partial(call, handle)) for call in calls]


def _each_once(lists: list[Any]) -> tuple[GpuProcess, ...]:
    found: dict[int, GpuProcess] = {}
    for number, processes in enumerate(lists):
        for process in processes or ():
            used = process.usedGpuMemory
            memory_mib = None if used is None else used // _BYTES_PER_MIB
            one = GpuProcess(process.pid, memory_mib, is_mps_client=number == _MPS)
            found[process.pid] = _with_larger(found.get(process.pid), one)
    return tuple(found[pid] for pid in sorted(found))


def _with_larger(before: GpuProcess | None, now: GpuProcess) -> GpuProcess:
    """Return ``now`` with the memory of both: what uses a GPU in two ways is listed with all its memory twice."""
    if before is None or before.memory_mib is None or now.memory_mib is None:
        return now
    return GpuProcess(now.pid, max(before.memory_mib, now.memory_mib), now.is_mps_client)
