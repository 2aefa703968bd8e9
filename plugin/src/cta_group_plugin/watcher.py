"""Follows the GPUs: one worker thread owns the driver, the event loop learns what it says.

The driver's calls block, for long when a GPU is in trouble, so none of them runs on the event loop or while kubelet
waits. An event reaches kubelet at once; a poll of all GPUs every few seconds finds what no event told.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NoReturn, TypeVar

from cta_group_plugin.errors import DriverAbsent, DriverError, DriverGone
from cta_group_plugin.health import after_event, after_poll
from cta_group_plugin.inventory import Offer, offer_of
from cta_group_plugin.logs import EventLog
from cta_group_plugin.ports import GpuEvent, GpuEventKind, GpuSource, Inventory
from cta_group_plugin.state import NodeState

_log = EventLog(__name__)

Answer = TypeVar("Answer")

_WAIT_SECONDS: Final = 1.0
"""One wait for events; also the longest that stopping waits for the worker thread."""
_LOOK_FOR_DRIVER_SECONDS: Final = 30.0


class Watcher:
    """Keeps :class:`NodeState` told of the GPUs."""

    def __init__(
        self,
        state: NodeState,
        source: GpuSource,
        *,
        reserve_mib: int,
        poll_seconds: float = 10.0,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._source = source
        self._reserve_mib = reserve_mib
        self._poll_seconds = poll_seconds
        self._wall_clock = wall_clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="driver")

    async def run(self) -> NoReturn:
        """Watch for ever. Raises DriverGone when only a fresh process can go on."""
        try:
            await self._open()
            while True:
                await self._poll()
                await self._watch_until(asyncio.get_running_loop().time() + self._poll_seconds)
        finally:
            # The thread may be inside a call that hangs; the process does not wait for it.
            self._thread.submit(self._source.close)
            self._thread.shutdown(wait=False)

    async def _open(self) -> None:
        """Open the driver; a node without one is idle, and looked at again from time to time."""
        while True:
            try:
                await self._in_thread(self._source.open)
            except DriverAbsent as absent:
                _log.info("no_driver", problem=absent)
                self._state.learn_driver_problem(str(absent))
                await asyncio.sleep(_LOOK_FOR_DRIVER_SECONDS)
            else:
                return

    async def _poll(self) -> None:
        """Read every GPU. A driver that fails this once keeps what was known; one that is gone ends the process."""
        try:
            inventory = await self._in_thread(self._source.inventory)
        except DriverGone:
            raise
        except DriverError as problem:
            _log.warning("gpu_poll_failed", problem=problem)
            return
        self._learn(inventory)

    def _learn(self, inventory: Inventory) -> None:
        view = self._state.view
        offer = _with_silent(offer_of(inventory, reserve_mib=self._reserve_mib), view.offer)
        served = [gpu.facts.uuid for gpu in offer.served]
        faults = after_poll(view.faults, inventory, served=served, now=self._wall_clock())
        for gpu in offer.withheld:
            if gpu not in view.offer.withheld:
                _log.warning("gpu_withheld", gpu=gpu.facts.uuid, product=gpu.facts.product, reason=gpu.reason)
        self._state.learn_devices(inventory, offer, faults)

    async def _watch_until(self, deadline: float) -> None:
        """Pass events on until ``deadline``, or until one says that every GPU must be looked at."""
        while (left := deadline - asyncio.get_running_loop().time()) > 0:
            events = await self._in_thread(lambda: self._source.wait_events(min(left, _WAIT_SECONDS)))
            if self._pass_on(events):
                return

    def _pass_on(self, events: Sequence[GpuEvent]) -> bool:
        """Tell the state; return whether the GPUs must be polled now."""
        view = self._state.view
        faults = view.faults
        for event in events:
            _log.warning("gpu_event", kind=event.kind.value, gpu=event.uuid, xid=event.xid, detail=event.detail)
            faults = after_event(faults, event, now=self._wall_clock())
        if view.inventory and faults != view.faults:
            self._state.learn_devices(view.inventory, view.offer, faults)
        return any(event.uuid is None or event.kind is GpuEventKind.RECOVERED for event in events)

    async def _in_thread(self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


def _with_silent(offer: Offer, before: Offer) -> Offer:
    """Return ``offer`` together with GPUs of ``before`` that do not answer now: unhealthy is not the same as gone."""
    answering = {gpu.facts.uuid for gpu in offer.served} | {gpu.facts.uuid for gpu in offer.withheld}
    silent = [gpu for gpu in before.served if gpu.facts.uuid not in answering]
    if not silent:
        return before if offer == before else offer
    served = sorted([*offer.served, *silent], key=lambda gpu: (gpu.facts.index, gpu.facts.uuid))
    return Offer(tuple(served), offer.withheld)
