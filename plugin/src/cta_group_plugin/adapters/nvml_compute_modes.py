"""Compute modes of real GPUs, through NVIDIA's management library.

The library is initialised for each question and released after it: questions are rare, and a process that keeps it open
cannot follow a driver that is changed under it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pynvml

from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.nvml_errors import driver_error
from cta_group_plugin.adapters.nvml_facts import COMPUTE_MODES
from cta_group_plugin.errors import DriverError
from cta_group_plugin.ports import ComputeMode

_NUMBERS = {mode: number for number, mode in COMPUTE_MODES.items()}


class NvmlComputeModes:
    """Implements :class:`cta_group_plugin.ports.ComputeModes`. Changing one takes root on the host."""

    def get(self, gpu: GpuUuid) -> ComputeMode:
        """Return the mode of a GPU."""
        with _handle(gpu, "read the compute mode") as handle:
            number = pynvml.nvmlDeviceGetComputeMode(handle)
        if number not in COMPUTE_MODES:
            raise DriverError(f"NVML told a compute mode of {number}, which is none that is known")
        return COMPUTE_MODES[number]

    def set(self, gpu: GpuUuid, mode: ComputeMode) -> None:
        """Change it."""
        with _handle(gpu, f"change the compute mode to {mode}") as handle:
            pynvml.nvmlDeviceSetComputeMode(handle, _NUMBERS[mode])


@contextmanager
def _handle(gpu: GpuUuid, doing: str) -> Iterator[Any]:
    try:
        pynvml.nvmlInit()
        try:
            yield pynvml.nvmlDeviceGetHandleByUUID(gpu)
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise driver_error(error, doing, answered_before=False) from error
