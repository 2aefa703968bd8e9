"""Fakes of the plugin's ports: what a test says is what they answer, and what they were told can be read."""

import queue
from collections.abc import Mapping, Sequence

from cta_group_core.ids import GpuUuid
from cta_group_plugin.errors import ApiUnavailable, DriverError, KubeletUnavailable
from cta_group_plugin.ports import Account, GpuEvent, GpuProcess, Inventory, MpsDemand, MpsState
from cta_group_plugin.report import NodeReport


class FakeGpuSource:
    """A driver that shows the inventory it was given and passes on the events that are pushed."""

    def __init__(self, inventory: Inventory) -> None:
        self.shown: Inventory | DriverError = inventory
        """What the next poll finds, or raises."""
        self.open_problem: DriverError | None = None
        self.is_closed = False
        self._events: queue.SimpleQueue[GpuEvent] = queue.SimpleQueue()

    def push(self, event: GpuEvent) -> None:
        """Let an event happen; safe from any thread."""
        self._events.put(event)

    def open(self) -> None:
        """Raise the problem that was set, if any."""
        if self.open_problem:
            raise self.open_problem

    def inventory(self) -> Inventory:
        """Return what is shown, or raise it."""
        if isinstance(self.shown, DriverError):
            raise self.shown
        return self.shown

    def processes(self, gpu: GpuUuid) -> tuple[GpuProcess, ...]:
        """Return none."""
        del gpu
        return ()

    def wait_events(self, timeout_seconds: float) -> tuple[GpuEvent, ...]:
        """Return the first event that comes within the time."""
        try:
            return (self._events.get(timeout=timeout_seconds),)
        except queue.Empty:
            return ()

    def close(self) -> None:
        """Remember that it was closed."""
        self.is_closed = True


class FakeMpsControl:
    """A supervisor whose daemons are ready unless a reason says why not."""

    def __init__(self) -> None:
        self.not_ready: dict[GpuUuid, str] = {}
        self.is_away = False
        self.demanded: list[tuple[MpsDemand, ...]] = []
        """What each call asked for."""

    async def sync(self, demands: Sequence[MpsDemand]) -> Mapping[GpuUuid, MpsState]:
        """Answer each demand."""
        self.demanded.append(tuple(demands))
        return {demand.gpu: self._state(demand) for demand in demands}

    async def close(self) -> None:
        """Nothing to release."""

    def _state(self, demand: MpsDemand) -> MpsState:
        if self.is_away:
            return MpsState(ready=False, reason="the supervisor does not answer", is_told=False)
        if reason := self.not_ready.get(demand.gpu):
            return MpsState(ready=False, reason=reason)
        return MpsState(ready=True, reason="", sm_percent=demand.sm_percent, memory_mib=demand.memory_mib)


class FakePodResources:
    """An account that a test writes."""

    def __init__(self) -> None:
        self.told: Account | KubeletUnavailable = Account()
        self.asked = 0

    async def account(self) -> Account:
        """Return the account, or raise what was set."""
        self.asked += 1
        if isinstance(self.told, KubeletUnavailable):
            raise self.told
        return self.told

    async def close(self) -> None:
        """Nothing to release."""


class FakeNodeApi:
    """An API server that remembers what was applied, and can be away."""

    def __init__(self) -> None:
        self.applied: list[NodeReport] = []
        self.is_away = False

    async def apply(self, status: NodeReport) -> None:
        """Remember the status, or raise ApiUnavailable."""
        if self.is_away:
            raise ApiUnavailable("the fake API is away")
        self.applied.append(status)

    async def close(self) -> None:
        """Nothing to release."""
