"""Tells the pods of a GPU in trouble about it, by an event on each, once for each cause.

Nothing of ours ever touches a running pod; an event is how its owner can know. What there is to tell is decided from
the node's account; here it is told, slowly and patiently: many pods of many GPUs may be concerned at the same moment,
and the API may be away.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol

from cta_group_core.ids import GpuUuid, GroupId
from cta_group_plugin.errors import ApiRefused, ApiUnavailable
from cta_group_plugin.health import is_out
from cta_group_plugin.ledger import Holder
from cta_group_plugin.logs import EventLog
from cta_group_plugin.ports import PodName
from cta_group_plugin.state import NodeState, NodeView

_log = EventLog(__name__)

_PAUSE_SECONDS: Final = 0.1
"""Between two events: ten a second are little to an API server, and all pods of a node are told in seconds."""
_RETRY_SECONDS: Final = 10.0
_OLD_SECONDS: Final = 3600.0
"""What could not be told for this long is no news any more."""
_RECENT_SECONDS: Final = 60.0
"""A daemon's end before this process started is told when it is no older."""

UidOf = Callable[[Collection[GroupId]], str | None]
"""Returns the UID of the pod that holds groups; ``None`` when nobody knows. Blocks: not for the event loop."""


@dataclass(frozen=True, slots=True)
class PodEvent:
    """One event to write."""

    pod: PodName
    uid: str | None
    """Without it the event is there, but ``kubectl describe pod`` does not show it."""
    reason: str
    """One word in CamelCase."""
    message: str
    key: str
    """Events of one pod with one reason and one key are the same event."""


class EventApi(Protocol):
    """Where events are written."""

    async def write(self, event: PodEvent) -> None:
        """Write one that may be there already. Raises ApiUnavailable, and ApiRefused for one that never will be."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that the pods of a GPU should know."""

    gpu: GpuUuid
    reason: str
    message: str
    key: str
    pods: frozenset[PodName] | None = None
    """Only these. ``None``: all that hold groups of the GPU."""


def health_causes(view: NodeView) -> Iterable[Cause]:
    """Return one cause for each GPU that is known to be broken."""
    for uuid, fault in sorted(view.faults.items()):
        gpu = view.offer.by_uuid.get(uuid)
        if gpu is None or not is_out(fault):
            continue
        told = f"GPU {gpu.facts.index} ({uuid}) is unhealthy: {fault.reason}. Running containers are left alone"
        yield Cause(uuid, "GPUUnhealthy", f"{told}, nothing new starts on it.", key=f"{uuid}/{fault.since}")


def limit_causes(view: NodeView) -> Iterable[Cause]:
    """Return one cause for each container with a process that runs without its limits."""
    for uuid, occupancy in sorted(view.occupancy.items()):
        gpu = view.offer.by_uuid.get(uuid)
        by_container = {(one.pod, one.container_id or one.pid): one for one in reversed(occupancy.unlimited)}
        for one in by_container.values():
            if gpu is None or one.pod is None:
                continue
            where = f"GPU {gpu.facts.index} ({uuid})"
            message = (
                f"{where}: {one.words}. Leave CUDA_MPS_PIPE_DIRECTORY and the pipe folder that it names as they "
                "are given to the container, and restart it."
            )
            pods = frozenset({one.pod})
            yield Cause(uuid, "LimitsNotInForce", message, key=f"{uuid}/{one.container_id or one.pid}", pods=pods)


class _Losses:
    """The ends of MPS daemons under their clients, each with the pods that held groups at that time."""

    def __init__(self, wall_clock: Callable[[], float]) -> None:
        self._wall_clock = wall_clock
        self._began = wall_clock()
        self._known: dict[GpuUuid, Cause] = {}
        self._old: dict[GpuUuid, str] = {}
        """What each GPU's daemon had lost already when it was looked at first; empty for nothing, or for news."""

    def causes(self, view: NodeView) -> Iterable[Cause]:
        for uuid, state in view.mps.items():
            gpu, loss = view.offer.by_uuid.get(uuid), state.loss
            key = f"{uuid}/{loss.at:.3f}" if loss else ""
            known = self._known.get(uuid)
            # The clock of the wall may jump by any time, so only what was there at the first look can be old.
            is_old = loss is not None and loss.at < self._began - _RECENT_SECONDS
            self._old.setdefault(uuid, key if is_old else "")
            if loss is None or gpu is None or (known and known.key == key) or key == self._old[uuid]:
                continue
            told = f"the MPS daemon of GPU {gpu.facts.index} ({uuid}) ended under its clients ({loss.reason})"
            message = f"{told}: programs of this pod have lost their CUDA contexts; restart it if they did not end."
            pods = frozenset(
                holder.container.pod for holder in view.holders if holder.container and uuid in holder.gpus
            )
            self._known[uuid] = Cause(uuid, "MPSDaemonEnded", message, key, pods)
        return self._known.values()


class EventTeller:
    """Writes what is to be told, each once."""

    def __init__(
        self,
        state: NodeState,
        api: EventApi,
        uid_of: UidOf | None,
        *,
        pause_seconds: float = _PAUSE_SECONDS,
        retry_seconds: float = _RETRY_SECONDS,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._api = api
        self._uid_of = uid_of
        self._pause_seconds = pause_seconds
        self._retry_seconds = retry_seconds
        self._losses = _Losses(wall_clock)
        self._told: set[tuple[PodName, str, str]] = set()

    async def run(self) -> NoReturn:
        """Tell for ever."""
        while True:
            view = self._state.view
            untold = [(cause, holder) for cause in self._causes(view) for holder in self._untold(cause, view)]
            for cause, holder in untold:
                await self._tell(cause, holder)
            if not untold:
                await self._state.change_after(view)

    def _causes(self, view: NodeView) -> list[Cause]:
        causes = [*health_causes(view), *limit_causes(view), *self._losses.causes(view)]
        # Only what may come again needs to be remembered.
        self._told &= {(pod, c.reason, c.key) for c in causes for pod in _pods_of(c.gpu, view)}
        return causes

    def _untold(self, cause: Cause, view: NodeView) -> list[Holder]:
        concerned: dict[PodName, Holder] = {}
        for holder in view.holders:
            if holder.container is None or cause.gpu not in holder.gpus:
                continue
            pod = holder.container.pod
            if (cause.pods is None or pod in cause.pods) and (pod, cause.reason, cause.key) not in self._told:
                concerned.setdefault(pod, holder)
        return list(concerned.values())

    async def _tell(self, cause: Cause, holder: Holder) -> None:
        if holder.container is None:
            return
        pod = holder.container.pod
        self._told.add((pod, cause.reason, cause.key))
        uid = await asyncio.to_thread(self._uid_of, holder.ids) if self._uid_of else None
        await self._write(PodEvent(pod, uid, cause.reason, cause.message, cause.key))
        await asyncio.sleep(self._pause_seconds)

    async def _write(self, event: PodEvent) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        while clock() - began < _OLD_SECONDS:
            try:
                await self._api.write(event)
            except ApiUnavailable as problem:
                _log.debug("event_delayed", problem=problem)
                await asyncio.sleep(self._retry_seconds)
            except ApiRefused as problem:
                _log.warning("event_refused", problem=problem)
                return
            else:
                _log.info("pod_told", pod=f"{event.pod.namespace}/{event.pod.name}", reason=event.reason)
                return


def _pods_of(gpu: GpuUuid, view: NodeView) -> set[PodName]:
    return {holder.container.pod for holder in view.holders if holder.container and gpu in holder.gpus}
