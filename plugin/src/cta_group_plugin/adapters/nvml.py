"""The GPU source of a real node: NVIDIA's management library through its Python binding.

Handles are looked up anew for every question and nothing of the binding leaves the adapters, so a library that was
initialised again never sees a handle from before. All calls block, some of them for long when a GPU is in trouble. Two
threads of the caller use this object at a time: one asks, the other waits for events. What they share is replaced,
never changed, so that either may stop in the middle of a call for ever.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import pynvml

from cta_group_core.errors import InvalidText
from cta_group_core.ids import GpuUuid
from cta_group_core.links import Closeness
from cta_group_plugin.adapters.nvml_errors import GPU_GONE, LIBRARY_GONE, code_of, driver_error
from cta_group_plugin.adapters.nvml_events import EventWatch
from cta_group_plugin.adapters.nvml_facts import read_facts, read_uuid, text_of
from cta_group_plugin.adapters.nvml_health import read_processes, read_use, read_vitals
from cta_group_plugin.adapters.nvml_links import read_links
from cta_group_plugin.gpu_source import GpuUse, Survey, Vitals, read_inventory
from cta_group_plugin.ports import BrokenGpu, GpuEvent, GpuEventKind, GpuFacts, GpuProcess, Inventory

_FIRST_PAUSE_SECONDS: Final = 0.05
"""Before a failed event wait is opened again; doubles with every failure, so that a broken driver costs no CPU."""

Answer = TypeVar("Answer")


class NvmlSource:
    """Implements :class:`cta_group_plugin.gpu_source.GpuSource`.

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
        self._uuid_by_index: Mapping[int, GpuUuid] = MappingProxyType({})
        self._surveys = 0
        self._answered_in: Mapping[GpuUuid, int] = MappingProxyType({})
        """The survey after which each GPU answered last."""
        self._watch_knows: frozenset[GpuUuid] = frozenset()
        self._lost_in: dict[GpuUuid, int] = {}
        """The survey during which each lost GPU was found to be lost. Of the waiting thread alone."""

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

    def survey(self) -> Survey:
        """Ask for the versions and the number of GPUs."""
        self._surveys += 1
        try:
            driver = text_of(pynvml.nvmlSystemGetDriverVersion())
            cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise self._driver_error(error, "list the GPUs") from error
        return Survey(driver, f"{cuda // 1000}.{cuda % 1000 // 10}", count)

    def read(self, index: int) -> GpuFacts | BrokenGpu:
        """Read every fact of a GPU. One that fails has the UUID that it had at this index when it answered."""
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = self._note_uuid(index, handle)
            facts = read_facts(handle, index, self._sysfs_root)
        except InvalidText as error:
            return BrokenGpu(index=index, uuid=None, reason=str(error))
        except pynvml.NVMLError as error:
            if code_of(error) in LIBRARY_GONE:
                raise self._driver_error(error, f"read GPU {index}") from error
            known = self._uuid_by_index.get(index)
            return BrokenGpu(index, known, f"NVML: {error}", is_lost=code_of(error) in GPU_GONE)
        self._answered_in = MappingProxyType({**self._answered_in, uuid: self._surveys})
        return facts

    def inventory(self) -> Inventory:
        """Read all GPUs one after the other, for callers that can wait for each."""
        return read_inventory(self)

    def vitals(self, gpu: GpuUuid) -> Vitals:
        """Ask a GPU how it is. Raises DriverError when it does not answer."""
        return self._ask(gpu, read_vitals, "ask for the health of")

    def use(self, gpu: GpuUuid) -> GpuUse:
        """Ask who uses a GPU; process ids in the caller's namespace. Raises DriverError."""
        return self._ask(gpu, read_use, "ask who uses")

    def links(self, gpus: Sequence[GpuUuid]) -> Mapping[frozenset[GpuUuid], Closeness]:
        """Ask how close each two of these GPUs are. Raises DriverError."""
        try:
            return read_links({gpu: pynvml.nvmlDeviceGetHandleByUUID(gpu) for gpu in gpus})
        except pynvml.NVMLError as error:
            raise self._driver_error(error, "ask how the GPUs are connected") from error

    def processes(self, gpu: GpuUuid) -> tuple[GpuProcess, ...]:
        """Return the processes on a GPU, MPS clients included; process ids in the caller's namespace."""
        return self._ask(gpu, read_processes, "list the processes of")

    def wait_events(self, timeout_seconds: float) -> tuple[GpuEvent, ...]:
        """Return the events of the next ``timeout_seconds``; empty when none came.

        A wait that fails is opened again within the same time. When it fails because a GPU was lost, the GPUs are asked
        one by one which it was; a loss that none of them admits is told without a UUID, once the time is over.
        """
        if back := self._found_again():
            return tuple(GpuEvent(kind=GpuEventKind.RECOVERED, uuid=uuid) for uuid in back)
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

    def _ask(self, gpu: GpuUuid, read: Callable[[Any], Answer], doing: str) -> Answer:
        try:
            return read(pynvml.nvmlDeviceGetHandleByUUID(gpu))
        except pynvml.NVMLError as error:
            raise self._driver_error(error, f"{doing} {gpu}") from error

    def _note_uuid(self, index: int, handle: Any) -> GpuUuid:
        uuid = read_uuid(handle)
        self._uuid_by_index = MappingProxyType({**self._uuid_by_index, index: uuid})
        return uuid

    def _found_again(self) -> list[GpuUuid]:
        """Return the lost GPUs that answered in a survey after their loss, and see to it that they are watched."""
        answered = self._answered_in
        back = sorted(uuid for uuid, lost_in in self._lost_in.items() if answered.get(uuid, 0) > lost_in)
        for uuid in back:
            del self._lost_in[uuid]
        if back or not answered.keys() <= self._watch_knows:
            self._watch.close()
        return back

    def _wait_once(self, timeout_seconds: float) -> tuple[GpuEvent, ...]:
        if not self._watch.is_open:
            self._watch_knows = frozenset(self._answered_in)
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
                uuid = self._note_uuid(index, handle)
            except (pynvml.NVMLError, InvalidText):
                continue  # whoever reads the GPU tells about it
            if uuid not in self._lost_in:
                handles[uuid] = handle
        return handles

    def _after_failed_wait(self, error: Exception) -> tuple[GpuEvent, ...]:
        """Close the wait and find out which GPUs were lost. Raises DriverGone when it is the library."""
        self._watch.close()
        if code_of(error) in LIBRARY_GONE:
            raise self._driver_error(error, "wait for events") from error
        if code_of(error) != pynvml.NVML_ERROR_GPU_IS_LOST:
            return ()
        lost = {uuid: why for uuid in set(self._uuid_by_index.values()) if (why := _failure_of(uuid))}
        news = {uuid: why for uuid, why in lost.items() if uuid not in self._lost_in}
        self._lost_in.update(dict.fromkeys(news, self._surveys))
        return tuple(GpuEvent(kind=GpuEventKind.LOST, uuid=uuid, detail=why) for uuid, why in sorted(news.items()))


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
