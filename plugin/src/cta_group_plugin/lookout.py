"""Finds out who is on a GPU: the driver says which processes, the host's kernel what they are, kubelet whose."""

import time
from collections.abc import Callable

from cta_group_core.ids import GpuUuid
from cta_group_plugin.gpu_source import GpuSource, Processes
from cta_group_plugin.occupants import GpuLook
from cta_group_plugin.ports import PodDevices

Record = Callable[[], tuple[PodDevices, ...] | None]
"""Returns what every container of the node holds; ``None`` when nobody knows. Blocks."""


class Lookout:
    """Blocks like the driver that it asks: only for the thread that asks it."""

    def __init__(
        self,
        source: GpuSource,
        processes: Processes | None,
        record: Record | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take ``processes`` as None where those of the host cannot be seen, ``record`` where nobody keeps one."""
        self._source = source
        self._processes = processes
        self._record = record
        self._clock = clock

    def look(self, gpu: GpuUuid) -> GpuLook:
        """Look once. Raises DriverError when the GPU does not answer."""
        began = self._clock()
        use = self._source.use(gpu)
        seen = self._processes.look(process.pid for process in use.processes) if self._processes else None
        return GpuLook(
            at=began,
            use=use,
            processes=seen,
            sees_all=bool(self._processes and self._processes.sees_all),
            # Last: whatever was on the GPU had its groups before.
            pods=self._record() if self._record else None,
        )
