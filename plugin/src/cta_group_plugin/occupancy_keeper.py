"""Keeps account of who is on each GPU, tells it, and lets no container start into memory that is not back yet."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from cta_group_core.errors import InvalidText
from cta_group_core.health.inputs import Suspected
from cta_group_core.ids import GpuUuid, GroupId
from cta_group_plugin.driver_threads import Asker
from cta_group_plugin.errors import DriverError, MemoryNotBack
from cta_group_plugin.inventory import ServedGpu
from cta_group_plugin.logs import EventLog
from cta_group_plugin.occupancy import GpuAccount, after_look
from cta_group_plugin.occupancy_view import Foreign, Occupancy, Unlimited
from cta_group_plugin.occupants import GpuLook, Occupant, Place, occupants_of
from cta_group_plugin.ports import PodDevices, PodName
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState, NodeView

_log = EventLog(__name__)

_LOOK_AGAIN_SECONDS: Final = 0.2
_SEE_START_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 2.0
"""A start waits this long for a look at its GPUs; a driver that takes longer has trouble that others tell of."""
_ROUNDED_MIB: Final = 64
"""Foreign memory is told in steps of this: a process that works must not make the node tell news all the time."""

_NOT_SHARED: Final = "the plugin does not see the host's processes (plugin.hostPID of the chart's values)"
_NO_RECORD: Final = "kubelet's record of the pods that hold groups cannot be read"
_NO_LIST: Final = "the driver does not tell which processes use it"
_UNSEEN: Final = (
    "not every process can be told apart: one is of another process-id namespace, or in no cgroup of a pod (kubelet's "
    "cgroupsPerQOS), or its MPS daemon does not tell its clients"
)


class OccupancyKeeper:
    """Belongs to the event loop; the driver is asked by whoever has a thread for it."""

    def __init__(
        self,
        state: NodeState,
        look: Callable[[GpuUuid], GpuLook],
        asker: Asker,
        enforcement: EnforcementSettings,
        *,
        late_seconds: float,
        patience_seconds: float,
        ask_clients: Callable[[], None] = lambda: None,
        see_start_seconds: float = _SEE_START_SECONDS,
    ) -> None:
        """``look`` blocks. After ``late_seconds`` a GPU whose memory is not given back is suspect.

        ``patience_seconds`` is how long one container start waits; kubelet gives up after 30. ``ask_clients`` is called
        when the daemons should tell their clients anew, because somebody seems to be none. ``see_start_seconds`` after
        a container started its GPU is looked at, between two polls too.
        """
        self._state = state
        self._look = look
        self._asker = asker
        self._enforcement = enforcement
        self._late_seconds = late_seconds
        self._patience_seconds = patience_seconds
        self._ask_clients = ask_clients
        self._accounts: dict[GpuUuid, GpuAccount] = {}
        self._looking: dict[GpuUuid, asyncio.Task[None]] = {}
        self._see_start_seconds = see_start_seconds
        self._seeing_starts: dict[GpuUuid, asyncio.TimerHandle] = {}

    def learn(self, looks: Mapping[GpuUuid, GpuLook]) -> None:
        """Take one look at some GPUs; what was known of GPUs that are not served any more is dropped."""
        view = self._state.view
        told = {uuid: each for uuid, each in view.occupancy.items() if uuid in view.offer.by_uuid}
        for uuid, look in looks.items():
            gpu = view.offer.by_uuid.get(uuid)
            before = self._accounts.get(uuid)
            if gpu and (before is None or look.at > before.at):
                told[uuid] = self._after(gpu, before, look, view)
        self._accounts = {uuid: account for uuid, account in self._accounts.items() if uuid in told}
        self._state.learn_occupancy(told)

    async def until_memory_is_back(self, gpus: Sequence[ServedGpu], *, since: float) -> None:
        """Return when no memory of an ended process is missing on any of ``gpus``; raise MemoryNotBack.

        ``since`` is when the container began to wait, on the event loop's clock; one look is taken in any case.
        """
        clock = asyncio.get_running_loop().time
        end = since + self._patience_seconds
        while True:
            await self._refresh([gpu.facts.uuid for gpu in gpus])
            problems = [problem for gpu in gpus if (problem := self.problem_of(gpu))]
            if not problems:
                self._see_starts(gpus)
                return
            if clock() >= end:
                raise MemoryNotBack("; ".join(problems))
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    def end(self) -> None:
        """Look at nothing any more."""
        for handle in self._seeing_starts.values():
            handle.cancel()
        for task in self._looking.values():
            task.cancel()

    def problem_of(self, gpu: ServedGpu) -> str:
        """Return why nothing may start on a GPU as far as its memory goes; empty when something may."""
        account = self._accounts.get(gpu.facts.uuid)
        if account is None or account.late_mib <= _spare_mib(gpu, self._state.view):
            return ""
        return f"GPU {gpu.facts.index} ({gpu.facts.uuid}) still holds {account.late_mib} MiB of an ended process"

    def _see_starts(self, gpus: Sequence[ServedGpu]) -> None:
        """Look a moment after a start: otherwise nobody would know of an engine that ends before the next poll."""
        loop = asyncio.get_running_loop()
        for uuid in (gpu.facts.uuid for gpu in gpus):
            if uuid not in self._seeing_starts:
                self._seeing_starts[uuid] = loop.call_later(self._see_start_seconds, self._see_start, uuid)

    def _see_start(self, uuid: GpuUuid) -> None:
        del self._seeing_starts[uuid]
        self._begin_look(uuid)

    async def _refresh(self, uuids: Sequence[GpuUuid]) -> None:
        """Take one look at each, together with all who want one now. A driver that does not answer stops nobody."""
        if tasks := [task for uuid in uuids if (task := self._begin_look(uuid))]:
            await asyncio.wait(tasks, timeout=_ANSWER_SECONDS)

    def _begin_look(self, uuid: GpuUuid) -> asyncio.Task[None] | None:
        if not self._state.view.health.may_call_driver(uuid):
            return None
        task = self._looking.get(uuid)
        if task is None or task.done():
            task = self._looking[uuid] = asyncio.create_task(self._ask(uuid))
        return task

    async def _ask(self, uuid: GpuUuid) -> None:
        try:
            look = await self._asker.ask(uuid, partial(self._look, uuid))
            self.learn({uuid: look})
        except DriverError as problem:
            _log.debug("gpu_not_looked_at", gpu=uuid, problem=problem)
        except Exception as error:  # noqa: BLE001 - a fault of ours must keep no container from its start
            _log.error("gpu_not_looked_at", gpu=uuid, cause=error)

    def _after(self, gpu: ServedGpu, before: GpuAccount | None, look: GpuLook, view: NodeView) -> Occupancy:
        uuid = gpu.facts.uuid
        mps = view.mps.get(uuid)
        place = self._place(gpu, look, view)
        asked_at = self._state.mps_asked_at if mps and mps.ready else None
        account = after_look(before, look, occupants_of(look, place), clients_asked_at=asked_at)
        self._accounts[uuid] = account
        self._note_news(uuid, before, account)
        if account.since.keys() - (before.since.keys() if before else set()):
            self._ask_clients()
        self._suspect(gpu, account, view)
        return Occupancy(
            problem=_problem(look, account),
            unlimited=tuple(_told(one, look.pods or (), view) for one in account.unlimited),
            foreign=tuple(map(_foreign, account.foreign)),
            late_mib=account.late_mib,
            lists_foreign=look.processes is not None and look.pods is not None,
        )

    def _place(self, gpu: ServedGpu, look: GpuLook, view: NodeView) -> Place:
        mps = view.mps.get(gpu.facts.uuid)
        # Who was a client of a daemon that ended has been told of that, and is not to be told anything else.
        clients = {*mps.client_pids, *(mps.loss.client_pids if mps.loss else ())} if mps else set()
        return Place(
            pods=None if look.pods is None else _pods_on(gpu, look.pods, view),
            is_limited=self._enforcement.uses_mps,
            clients=clients,
            clients_are_told=bool(mps and mps.ready and all(pid > 0 for pid in mps.client_pids)),
        )

    def _suspect(self, gpu: ServedGpu, account: GpuAccount, view: NodeView) -> None:
        if account.late_since is None or account.at - account.late_since < self._late_seconds:
            return
        if account.late_mib > _spare_mib(gpu, view):
            held = f"it still holds {account.late_mib} MiB of an ended process, longer than {self._late_seconds:g} s"
            self._state.observe({gpu.facts.uuid: (Suspected(held),)})

    @staticmethod
    def _note_news(uuid: GpuUuid, before: GpuAccount | None, account: GpuAccount) -> None:
        known = {one.key for one in (*before.unlimited, *before.foreign)} if before else set()
        for event, found in (("unlimited_process", account.unlimited), ("foreign_process", account.foreign)):
            for one in found:
                if one.key not in known:
                    pod = one.pod.uid if one.pod else None
                    _log.warning(event, gpu=uuid, pid=one.pid, name=one.name, memory_mib=one.memory_mib, pod_uid=pod)
        if account.late_mib and not (before and before.late_mib):
            _log.warning("memory_not_given_back", gpu=uuid, memory_mib=account.late_mib)


def _problem(look: GpuLook, account: GpuAccount) -> str:
    if not look.use.lists_processes:
        return _NO_LIST
    if look.processes is None:
        return _NOT_SHARED
    if look.pods is None:
        return _NO_RECORD
    return "" if account.is_seen else _UNSEEN


def _group(text: str, view: NodeView) -> GroupId | None:
    """Return a group that kubelet has given out; None for a text that another plugin gave out under our name."""
    with suppress(InvalidText):
        return view.offer.group_of(text)
    return None


def _pods_on(gpu: ServedGpu, pods: Iterable[PodDevices], view: NodeView) -> dict[str, bool]:
    """Return the pods that hold groups of a GPU, and whether one of their containers has it whole."""
    found: dict[str, bool] = {}
    for held in pods:
        groups = [group for text in held.ids if (group := _group(text, view)) and group.gpu == gpu.facts.uuid]
        if groups:
            found[held.pod_uid] = found.get(held.pod_uid, False) or gpu.units.is_whole(len(groups))
    return found


def _spare_mib(gpu: ServedGpu, view: NodeView) -> int:
    """Return the memory of a GPU that goes with groups which nobody holds."""
    held = {group_id for holder in view.holders for group_id in holder.ids if group_id.gpu == gpu.facts.uuid}
    free = max(0, gpu.units.capacity - len(held))
    return (gpu.memory_total_mib - gpu.reserve_mib) * free // gpu.units.capacity


def _foreign(one: Occupant) -> Foreign:
    memory = one.memory_mib
    return Foreign(one.pid, one.name, None if memory is None else -(-memory // _ROUNDED_MIB) * _ROUNDED_MIB)


def _told(one: Occupant, pods: Iterable[PodDevices], view: NodeView) -> Unlimited:
    uid = one.pod.uid if one.pod else None
    ids = {_group(text, view) for held in pods if held.pod_uid == uid for text in held.ids}
    return Unlimited(one.pid, one.name, _pod_with(ids, view), one.pod.container_id if one.pod else None)


def _pod_with(ids: set[GroupId | None], view: NodeView) -> PodName | None:
    """Return the pod that kubelet lists with any of these groups."""
    listed = (holder.container.pod for holder in view.holders if holder.container and not holder.ids.isdisjoint(ids))
    return next(listed, None)
