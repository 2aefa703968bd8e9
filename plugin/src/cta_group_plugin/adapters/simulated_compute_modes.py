"""Simulated compute modes: recorded in a file for each GPU and without any effect."""

from pathlib import Path

from cta_group_core.ids import GpuUuid
from cta_group_plugin.errors import DriverError
from cta_group_plugin.ports import ComputeMode

FILE_NAME = "simulated-compute-mode"


class SimulatedComputeModes:
    """Implements :class:`cta_group_plugin.ports.ComputeModes`, in the GPUs' folders below ``mps_root``."""

    def __init__(self, mps_root: Path) -> None:
        self._mps_root = mps_root

    def get(self, gpu: GpuUuid) -> ComputeMode:
        """Return what was set last, Default at first."""
        try:
            return ComputeMode(self._file(gpu).read_text(encoding="ascii").strip())
        except FileNotFoundError:
            return ComputeMode.DEFAULT
        except (OSError, ValueError) as error:
            raise DriverError(f"the simulated compute mode cannot be read: {error}") from error

    def set(self, gpu: GpuUuid, mode: ComputeMode) -> None:
        """Record it."""
        try:
            self._file(gpu).write_text(f"{mode}\n", encoding="ascii")
        except OSError as error:
            raise DriverError(f"the simulated compute mode cannot be recorded: {error}") from error

    def _file(self, gpu: GpuUuid) -> Path:
        return self._mps_root / gpu / FILE_NAME
