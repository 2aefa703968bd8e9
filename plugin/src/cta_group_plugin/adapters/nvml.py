"""The GPU source of a real node: NVIDIA's management library through its Python binding.

Handles are looked up anew for every question and nothing of the binding leaves this module, so a library that was
initialised again never sees a handle from before. All calls block, some of them for long when a GPU is in trouble:
one worker thread of the caller owns this object.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from cta_group_core.errors import InvalidText
from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.nvml_errors import GPU_GONE, LIBRARY_GONE, code_of, driver_error
from cta_group_plugin.adapters.nvml_events import EventWatch
from cta_group_plugin.adapters.nvml_facts import read_facts, read_processes, read_uuid, text_of
from cta_group_plugin.ports import BrokenGpu, GpuEvent, GpuEventKind, GpuFacts, GpuProcess, Inventory

_FIRST_PAUSE_SECONDS = 0.05
"""Before a failed event wait is opened again; doubles with every failure, so that a broken driver costs no CPU."""


class NvmlSource:
    """Implements :class:`cta_group_plugin.ports.GpuSource`.

    The environment of the process decides what NVML shows: ``CUDA_VISIBLE_DEVICES``, ``CUDA_MPS_*`` and
    ``NVML_MPS_DEVICE_ENUMERATION`` must have been dropped before.
    """

    def __init__(
        self,
        *,
        sysfs_root: Path = Path("/sys"),
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._sysfs_root = sysfs_root
        self._clock = clock
        self._pause = pause
        self._initialised = False
        self._answered_before = False
        self._watch = EventWatch()
        self._uuid_by_index: dict[int, GpuUuid] = {}
        self._lost: set[GpuUuid] = set()
        self._recovered: list[GpuUuid] = []

    def open(self) -> None:
        """Load and initialise the library. Raises DriverAbsent or DriverGone; without any GPU it is no error."""
        if self._initialised:
            return
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise self._driver_error(error, "initialise") from error
        self._initialised = True
        self._answered_before = True

    def inventory(self) -> Inventory:
        """Read every GPU afresh. One that fails is listed as broken, with the UUID it had when it answered."""
        try:
            driver = text_of(pynvml.nvmlSystemGetDriverVersion())
            cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
            read = [self._read(index) for index in range(pynvml.nvmlDeviceGetCount())]
        except pynvml.NVMLError as error:
            raise self._driver_error(error, "list the GPUs") from error
        gpus = tuple(gpu for gpu in read if isinstance(gpu, GpuFacts))
        self._note_answering(gpus)
        return Inventory(
            driver_version=driver,
            cuda_version=f"{cuda // 1000}.{cuda % 1000 // 10}",
            gpus=gpus,
            broken=tuple(gpu for gpu in read if isinstance(gpu, BrokenGpu)),
        )

    def processes(self, gpu: GpuUuid) -> tuple[GpuProcess, ...]:
        """Return the compute processes on a GPU, MPS clients included; process ids in the caller's namespace."""
        try:
            return read_processes(pynvml.nvmlDeviceGetHandleByUUID(gpu))
        except pynvml.NVMLError as error:
            raise self._driver_error(error, f"list the processes of {gpu}") from error

    def wait_events(self, timeout_seconds: float) -> tuple[GpuEvent, ...]:
        """Return the events of the next ``timeout_seconds``; empty when none came.

        A wait that fails is opened again within the same time. When it fails because a GPU was lost, the GPUs are asked
        one by one which it was; a loss that none of them admits is told without a UUID, once the time is over.
        """
        if self._recovered:
            recovered, self._recovered = self._recovered, []
            return tuple(GpuEvent(kind=GpuEventKind.RECOVERED, uuid=uuid) for uuid in recovered)
        deadline = self._clock() + timeout_seconds
        pause_seconds = _FIRST_PAUSE_SECONDS
        unnamed: tuple[GpuEvent, ...] = ()
        while (left := deadline - self._clock()) > 0:
            try:
                return self._wait_once(left)
            except pynvml.NVMLError as error:
                if lost := self._after_failed_wait(error):
                    return lost
                unnamed = _unnamed_loss(error)
            self._pause(min(pause_seconds, left))
            pause_seconds *= 2
        return unnamed

    def close(self) -> None:
        """Release the library; safe to call twice."""
        self._watch.close()
        if not self._initialised:
            return
        self._initialised = False
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError:
            return  # a library that is gone has nothing left to release

    def _driver_error(self, error: Exception, doing: str) -> Exception:
        return driver_error(error, doing, answered_before=self._answered_before)

    def _read(self, index: int) -> GpuFacts | BrokenGpu:
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            self._uuid_by_index[index] = read_uuid(handle)
            return read_facts(handle, index, self._sysfs_root)
        except InvalidText as error:
            return BrokenGpu(index=index, uuid=None, reason=str(error))
        except pynvml.NVMLError as error:
            if code_of(error) in LIBRARY_GONE:
                raise
            return BrokenGpu(index=index, uuid=self._uuid_by_index.get(index), reason=f"NVML: {error}")

    def _note_answering(self, gpus: tuple[GpuFacts, ...]) -> None:
        """Remember which lost GPUs are back, and watch them again."""
        answering = {gpu.uuid for gpu in gpus}
        back = self._lost & answering
        self._lost -= back
        self._recovered.extend(sorted(back))
        if back:
            self._watch.close()

    def _wait_once(self, timeout_seconds: float) -> tuple[GpuEvent, ...]:
        if not self._watch.is_open:
            self._watch.open(self._handles())
        if self._watch.watched:
            return self._watch.wait(timeout_seconds)
        self._pause(timeout_seconds)
        return ()

    def _handles(self) -> dict[GpuUuid, Any]:
        handles: dict[GpuUuid, Any] = {}
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                uuid = read_uuid(handle)
            except (pynvml.NVMLError, InvalidText):
                continue  # the inventory tells about it
            self._uuid_by_index[index] = uuid
            if uuid not in self._lost:
                handles[uuid] = handle
        return handles

    def _after_failed_wait(self, error: Exception) -> tuple[GpuEvent, ...]:
        """Close the wait and find out which GPUs were lost. Raises DriverGone when it is the library."""
        self._watch.close()
        if code_of(error) in LIBRARY_GONE:
            raise self._driver_error(error, "wait for events") from error
        if code_of(error) != pynvml.NVML_ERROR_GPU_IS_LOST:
            return ()
        newly_lost = {uuid: why for uuid in self._uuid_by_index.values() if (why := _failure_of(uuid))}
        for uuid in self._lost:
            newly_lost.pop(uuid, None)
        self._lost.update(newly_lost)
        return tuple(GpuEvent(kind=GpuEventKind.LOST, uuid=uuid, detail=why) for uuid, why in newly_lost.items())


def _unnamed_loss(error: Exception) -> tuple[GpuEvent, ...]:
    if code_of(error) != pynvml.NVML_ERROR_GPU_IS_LOST:
        return ()
    return (GpuEvent(kind=GpuEventKind.LOST, uuid=None, detail=str(error)),)


def _failure_of(uuid: GpuUuid) -> str | None:
    """Ask a GPU something cheap that needs the hardware; return why it cannot answer, None when it can."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        pynvml.nvmlDeviceGetPerformanceState(handle)
    except pynvml.NVMLError as error:
        return str(error) if code_of(error) in GPU_GONE else None
    return None
