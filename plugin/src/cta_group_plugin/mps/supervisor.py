"""Turns what is demanded on this node into one keeper for each GPU. Level-triggered."""

import asyncio
from collections.abc import Callable, Sequence

from cta_group_core.ids import GpuUuid
from cta_group_plugin.mps.keeper import DaemonKeeper
from cta_group_plugin.ports import MpsDemand, MpsState


class MpsSupervisor:
    """All daemons of the node. GPUs never wait for each other, but for ``Timing.sync_seconds`` within one answer."""

    def __init__(self, make_keeper: Callable[[GpuUuid], DaemonKeeper], forget: Callable[[GpuUuid], None]) -> None:
        """``make_keeper`` makes the keeper of a GPU; ``forget`` is told when there is nothing to keep any more."""
        self._make_keeper = make_keeper
        self._forget = forget
        self._keepers: dict[GpuUuid, DaemonKeeper] = {}
        self._tasks: dict[GpuUuid, asyncio.Task[None]] = {}
        self._generation = 0
        """Of the plugin that decides: the one that kubelet took last."""

    async def adopt(self, gpus: Sequence[GpuUuid]) -> None:
        """Look after daemons that an earlier supervisor left running on these GPUs; nothing is started.

        One that does not answer soon is looked at on.
        """
        for gpu in gpus:
            self._keeper_of(gpu)
        await asyncio.gather(*(self._keepers[gpu].first_look() for gpu in gpus))
        self._drop_idle()

    async def sync(self, demands: Sequence[MpsDemand], *, generation: int = 0) -> dict[GpuUuid, MpsState]:
        """Make exactly this the demand of the node and return the state of each GPU in it, soon.

        What is not known soon enough of a GPU is told as it was known before, or as being looked at.
        ``generation`` is when kubelet took the plugin that asks, nanoseconds since boot. While one plugin takes over
        from another both ask; demands of the older would lower what the newer has given out, so they change nothing.
        """
        if generation < self._generation:
            return {demand.gpu: self._seen(demand.gpu) for demand in demands}
        self._generation = generation
        wanted = {demand.gpu: demand for demand in demands}
        for gpu, keeper in self._keepers.items():
            if gpu not in wanted:
                keeper.want(None)
        self._drop_idle()
        states = await asyncio.gather(*(self._keeper_of(gpu).settle(demand) for gpu, demand in wanted.items()))
        return dict(zip(wanted, states, strict=True))

    def states(self) -> dict[GpuUuid, MpsState]:
        """Return the state of each GPU that has a daemon or should have one, as it was seen last."""
        return {gpu: keeper.state for gpu, keeper in self._keepers.items() if not keeper.is_idle}

    def _seen(self, gpu: GpuUuid) -> MpsState:
        if keeper := self._keepers.get(gpu):
            return keeper.state
        return MpsState(ready=False, reason="another plugin has registered later and does not want an MPS daemon here")

    async def stop(self) -> None:
        """Stop looking; end the daemons without clients and leave the others running."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.gather(*(keeper.leave() for keeper in self._keepers.values()))

    def _keeper_of(self, gpu: GpuUuid) -> DaemonKeeper:
        if gpu not in self._keepers:
            keeper = self._keepers[gpu] = self._make_keeper(gpu)
            self._tasks[gpu] = asyncio.create_task(keeper.keep(), name=f"keep {gpu}")
        return self._keepers[gpu]

    def _drop_idle(self) -> None:
        for gpu in [gpu for gpu, keeper in self._keepers.items() if keeper.is_idle]:
            self._tasks.pop(gpu).cancel()
            del self._keepers[gpu]
            self._forget(gpu)
