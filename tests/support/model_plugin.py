"""The plugin's own parts put together over fakes, to be asked as kubelet asks and killed at any moment."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import grpc

from cta_group_core.health.evidence import Epoch
from cta_group_core.health.record import HealthRecord, dump_record
from cta_group_plugin.accounts import AccountKeeper
from cta_group_plugin.allocator import Allocator
from cta_group_plugin.answers import Rules
from cta_group_plugin.ceilings import CeilingKeeper
from cta_group_plugin.driver_threads import Asker
from cta_group_plugin.gpu_source import GpuSource
from cta_group_plugin.health_record import RecordKeeper
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.metrics import Metrics
from cta_group_plugin.ports import GpuEvent, MpsControl, PodDevices, PodResources
from cta_group_plugin.service import DevicePluginService, Stream
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from cta_group_plugin.testing.kubelet_model import Refused
from cta_group_plugin.watcher import Watcher
from plugin_values import RESERVE_MIB

Answer = TypeVar("Answer")
POLL_SECONDS = 10.0
_EPOCH_SECONDS = 1.7e9


class _InlineAsker(Asker):
    """Asks without a thread, which would have no time to answer in."""

    async def ask_patiently(self, call: Callable[[], Answer]) -> Answer:
        return call()

    async def ask(self, about: Hashable, call: Callable[[], Answer]) -> Answer:
        del about
        return call()


class _Context:
    """The one thing that the service does with a call's context."""

    async def abort(self, code: grpc.StatusCode, details: str = "") -> NoReturn:
        """End the call."""
        raise Refused(f"{code.name}: {details}")


def _context() -> Any:  # of each method another type, and none is made outside of a server
    return _Context()


class KeptRecord:
    """The health record on the node's disk, and the boot that it belongs to."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.boots = 1

    def load(self) -> str | None:
        """Return the text."""
        return self.text

    def save(self, text: str) -> None:
        """Replace the text."""
        self.text = text

    def is_kept(self) -> bool:
        """Tell that nobody removes it."""
        return True

    def take_word(self) -> str | None:
        """Return that nobody said anything."""
        return None

    def epoch(self) -> Epoch:
        """Return what marks this boot."""
        return Epoch(boot_id=f"boot-{self.boots}")


class ModelPlugin:
    """One process of the plugin, from its start to its death."""

    def __init__(
        self,
        source: GpuSource,
        pod_resources: PodResources,
        pod_devices: Callable[[], tuple[PodDevices, ...] | None],
        mps: MpsControl,
        record: KeptRecord,
        *,
        max_clients: int,
    ) -> None:
        clock = asyncio.get_running_loop().time
        self.state = NodeState(
            clock,
            wall_clock=lambda: _EPOCH_SECONDS + clock(),
            boot_clock=lambda: int(clock() * 1e9) + 1,
        )
        self.enforcement = EnforcementSettings()
        self.rules = Rules(self.enforcement, Path("/run/cta-group/mps"), max_clients)
        self._record = record
        RecordKeeper(self.state, record, record.epoch).recall()
        self._accounts = AccountKeeper(self.state, pod_resources, record=pod_devices)
        self._ceilings = CeilingKeeper(self.state, mps, self.enforcement, needs_account=True, patience_seconds=2.0)
        self._allocator = Allocator(self.state, self._ceilings, self.rules, Metrics("model"), self._accounts.ask_soon)
        self._watcher = Watcher(
            self.state,
            source,
            _InlineAsker(),
            reserve_mib=RESERVE_MIB,
            poll_seconds=POLL_SECONDS,
            on_program_fault=self._ceilings.ask_now,
        )
        self._service = DevicePluginService(self.state, self._allocator, Stream())
        self._registrations = 0
        self._tasks: list[asyncio.Future[None]] = []
        self._listener: asyncio.Future[None] | None = None

    async def begin(self) -> None:
        """Look at the GPUs for the first time, and go on with everything."""
        await self._watcher._poll()
        parts: Iterable[Callable[[], Awaitable[None]]] = (
            self._watcher._poll_for_ever,
            self._accounts.run,
            self._ceilings.run,
            self._keep_record,
        )
        self._tasks += [asyncio.ensure_future(part()) for part in parts]

    async def die(self) -> None:
        """End at once, as by SIGKILL."""
        self.lose_kubelet()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self) -> None:
        """Raise what one of the parts died of, if one did."""
        for task in [*self._tasks, *([self._listener] if self._listener else ())]:
            if task.done() and not task.cancelled():
                task.result()

    def happen(self, event: GpuEvent) -> None:
        """Let the driver tell of an event."""
        self._watcher._pass_on([event])

    def listen(self, heard: Callable[[dict[str, str]], None]) -> None:
        """Register with a kubelet, which hears every list until it is lost."""
        self.lose_kubelet()
        self._registrations += 1
        self._service = DevicePluginService(self.state, self._allocator, Stream())
        self.state.learn_registration(f"model-{self._registrations}.sock")
        self._listener = asyncio.ensure_future(self._stream(heard))

    def lose_kubelet(self) -> None:
        """Notice that kubelet is another one, or away; what it listened to is cancelled."""
        if self._listener:
            self._listener.cancel()
        self.state.learn_registration("", "kubelet.sock was made anew or removed")

    async def prefer(self, request: api.ContainerPreferredAllocationRequest) -> list[str]:
        """Call GetPreferredAllocation."""
        asked = api.PreferredAllocationRequest(container_requests=[request])
        answer = await self._service.GetPreferredAllocation(asked, _context())
        return list(answer.container_responses[0].deviceIDs)

    async def allocate(self, ids: Sequence[str]) -> api.ContainerAllocateResponse:
        """Call Allocate."""
        asked = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=ids)])
        return (await self._service.Allocate(asked, _context())).container_responses[0]

    async def start(self, ids: Sequence[str]) -> None:
        """Call PreStartContainer."""
        await self._service.PreStartContainer(api.PreStartContainerRequest(devices_ids=ids), _context())

    async def _stream(self, heard: Callable[[dict[str, str]], None]) -> None:
        async for answer in self._service.ListAndWatch(api.Empty(), _context()):
            heard({device.ID: device.health for device in answer.devices})

    async def _keep_record(self) -> None:
        """Write what the health record's keeper would write, without its threads."""
        view = self.state.view
        while True:
            present = {gpu.uuid for gpu in view.inventory.gpus} if view.inventory else set(view.health.states)
            health = view.health.without_absent(present)
            self._record.save(dump_record(HealthRecord(self._record.epoch(), dict(health.states))))
            known = view.health
            while view.health is known:
                view = await self.state.change_after(view)
