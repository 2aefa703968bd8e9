"""Waits for NVML's events of all GPUs at once."""

import ctypes
from collections.abc import Mapping
from typing import Any

import pynvml

from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.nvml_errors import code_of
from cta_group_plugin.ports import GpuEvent, GpuEventKind

_LARGEST_BATCH = 64
"""A storm of events reaches the caller in pieces of this size, so that it gets a turn in between."""


class EventWatch:
    """One event set of the driver. Closed at first and after every failure; :meth:`open` begins afresh.

    Events from before it was opened are lost, so what happened in between must be read from the GPUs.
    """

    def __init__(self) -> None:
        self._event_set: Any | None = None
        self._uuid_by_address: dict[int, GpuUuid] = {}

    @property
    def is_open(self) -> bool:
        """Tell whether events are being collected."""
        return self._event_set is not None

    @property
    def watched(self) -> frozenset[GpuUuid]:
        """The GPUs whose events are being collected."""
        return frozenset(self._uuid_by_address.values())

    def open(self, handles: Mapping[GpuUuid, Any]) -> None:
        """Collect the XIDs of these GPUs from now on. A GPU that cannot report events is left out."""
        self.close()
        self._event_set = pynvml.nvmlEventSetCreate()
        for uuid, handle in handles.items():
            if _register(handle, self._event_set):
                self._uuid_by_address[_address(handle)] = uuid

    def wait(self, timeout_seconds: float) -> tuple[GpuEvent, ...]:
        """Return what comes within the time, at most 64 events; empty when nothing came. Raises NVMLError."""
        events: list[GpuEvent] = []
        timeout_ms = max(0, int(timeout_seconds * 1000))
        while len(events) < _LARGEST_BATCH:
            try:
                data = pynvml.nvmlEventSetWait(self._event_set, 0 if events else timeout_ms)
            except pynvml.NVMLError as error:
                if events or code_of(error) == pynvml.NVML_ERROR_TIMEOUT:
                    break
                raise
            events.append(self._event(data))
        return tuple(events)

    def close(self) -> None:
        """Stop collecting; safe to call at any time."""
        event_set, self._event_set = self._event_set, None
        self._uuid_by_address = {}
        if event_set is None:
            return
        try:
            pynvml.nvmlEventSetFree(event_set)
        except pynvml.NVMLError:
            return  # the library that owned it is gone, and the set with it

    def _event(self, data: Any) -> GpuEvent:
        return GpuEvent(
            kind=GpuEventKind.XID,
            uuid=self._uuid_by_address.get(_address(data.device)),
            xid=int(data.eventData),
        )


def _register(handle: Any, event_set: Any) -> bool:
    """Ask for XIDs. False on parts (old, consumer, virtual) that do not report any, and for a GPU that fails."""
    wanted = pynvml.nvmlEventTypeXidCriticalError
    try:
        if not pynvml.nvmlDeviceGetSupportedEventTypes(handle) & wanted:
            return False
        pynvml.nvmlDeviceRegisterEvents(handle, wanted, event_set)
    except pynvml.NVMLError:
        return False
    return True


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
