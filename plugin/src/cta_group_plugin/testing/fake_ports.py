"""Fakes of the plugin's ports: what a test says is what they answer, and what they were told can be read."""

import queue
import threading
from collections.abc import Mapping, Sequence

from cta_group_core.ids import GpuUuid
from cta_group_core.links import Closeness
from cta_group_plugin.errors import ApiUnavailable, DriverError, KubeletUnavailable
from cta_group_plugin.gpu_source import GpuUse, Survey, Vitals
from cta_group_plugin.ports import Account, BrokenGpu, GpuEvent, GpuFacts, Inventory, MpsDemand, MpsState
from cta_group_plugin.report import NodeReport


class FakeGpuSource:
    """A driver that shows the inventory it was given and passes on the events that are pushed."""

    def __init__(self, inventory: Inventory) -> None:
        self.shown: Inventory | DriverError = inventory
        """What the next poll finds, or raises."""
        self.open_problem: DriverError | None = None
        self.told: dict[GpuUuid, Vitals | DriverError] = {}
        """What a GPU says of its health, or raises; nothing bad when it is not here."""
        self.used: dict[GpuUuid, GpuUse] = {}
        self.stuck: dict[GpuUuid, threading.Event] = {}
        """A question about one of these GPUs hangs until the event is set."""
        self.linked: dict[frozenset[GpuUuid], Closeness] | DriverError = {}
        """How close GPUs are, or what is raised instead."""
        self.asked_for_links: list[tuple[GpuUuid, ...]] = []
        self.asked: list[GpuUuid] = []
        """Every question about a GPU."""
        self.is_closed = False
        self._events: queue.SimpleQueue[GpuEvent] = queue.SimpleQueue()

    @property
    def is_quiet(self) -> bool:
        """Tell whether every event was taken."""
        return self._events.empty()

    def push(self, event: GpuEvent) -> None:
        """Let an event happen; safe from any thread."""
        self._events.put(event)

    def open(self) -> None:
        """Raise the problem that was set, if any."""
        if self.open_problem:
            raise self.open_problem

    def survey(self) -> Survey:
        """Say how many GPUs are shown, or raise what is."""
        shown = self._shown()
        return Survey(
            shown.driver_version, shown.cuda_version, len([*shown.gpus, *shown.broken]), simulated=shown.simulated
        )

    def read(self, index: int) -> GpuFacts | BrokenGpu:
        """Return the GPU that is shown at a place, after whatever hangs."""
        shown = self._shown()
        everything: list[GpuFacts | BrokenGpu] = [*shown.gpus, *shown.broken]
        gpu = sorted(everything, key=lambda each: each.index)[index]
        if gpu.uuid:
            self._ask(gpu.uuid)
        return gpu

    def vitals(self, gpu: GpuUuid) -> Vitals:
        """Return what was set, or raise it."""
        self._ask(gpu)
        told = self.told.get(gpu, Vitals())
        if isinstance(told, DriverError):
            raise told
        return told

    def use(self, gpu: GpuUuid) -> GpuUse:
        """Return what was set; nobody uses a GPU otherwise."""
        self._ask(gpu)
        return self.used.get(gpu, GpuUse())

    def links(self, gpus: Sequence[GpuUuid]) -> Mapping[frozenset[GpuUuid], Closeness]:
        """Return what was set of these GPUs, or raise it."""
        self.asked_for_links.append(tuple(gpus))
        if isinstance(self.linked, DriverError):
            raise self.linked
        return {pair: closeness for pair, closeness in self.linked.items() if pair <= set(gpus)}

    def wait_events(self, timeout_seconds: float) -> tuple[GpuEvent, ...]:
        """Return the first event that comes within the time."""
        try:
            return (self._events.get(timeout=timeout_seconds),)
        except queue.Empty:
            return ()

    def close(self) -> None:
        """Remember that it was closed."""
        self.is_closed = True

    def _ask(self, gpu: GpuUuid) -> None:
        self.asked.append(gpu)
        if gpu in self.stuck:
            self.stuck[gpu].wait()

    def _shown(self) -> Inventory:
        if isinstance(self.shown, DriverError):
            raise self.shown
        return self.shown


class FakeMpsControl:
    """A supervisor whose daemons are ready unless a reason says why not."""

    def __init__(self) -> None:
        self.not_ready: dict[GpuUuid, str] = {}
        self.is_away = False
        self.demanded: list[tuple[MpsDemand, ...]] = []
        """What each call asked for."""
        self.generations: list[int] = []
        """The generation of each call."""

    async def sync(self, demands: Sequence[MpsDemand], *, generation: int = 0) -> Mapping[GpuUuid, MpsState]:
        """Answer each demand."""
        self.demanded.append(tuple(demands))
        self.generations.append(generation)
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
        self.others: dict[str, frozenset[str]] = {}
        """Devices of other plugins, by resource."""
        self.asked = 0

    async def account(self) -> Account:
        """Return the account, or raise what was set."""
        self.asked += 1
        if isinstance(self.told, KubeletUnavailable):
            raise self.told
        return self.told

    async def other_devices(self) -> Mapping[str, frozenset[str]]:
        """Return what was set."""
        return dict(self.others)

    async def close(self) -> None:
        """Nothing to release."""


class FakeNodeApi:
    """An API server that remembers what was applied, and can be away."""

    def __init__(self) -> None:
        self.applied: list[NodeReport] = []
        self.word = ""
        """What a person wrote on the object."""
        self.is_away = False

    async def apply(self, status: NodeReport) -> str:
        """Remember the status, or raise ApiUnavailable."""
        if self.is_away:
            raise ApiUnavailable("the fake API is away")
        self.applied.append(status)
        return self.word

    async def close(self) -> None:
        """Nothing to release."""
