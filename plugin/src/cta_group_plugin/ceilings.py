"""Keeps the MPS supervisor told of the largest share on each shared GPU, and makes a container wait for its limits."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from cta_group_core.ids import GpuUuid
from cta_group_core.slices import Slice
from cta_group_plugin.allocation import largest_fractions, whole_gpus
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.inventory import ServedGpu
from cta_group_plugin.ports import ComputeMode, MpsControl, MpsDemand, MpsState, whole_demand
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState, NodeView

_FULL_PERCENT: Final = 100
_NO_LIMIT_MIB: Final = 0
_NOT_COUNTED: Final = "kubelet has not told yet which container holds what"
_NO_ANSWER: Final = "the MPS supervisor has not answered yet"
_ASK_AGAIN_SECONDS: Final = 0.2
_GATHER_SECONDS: Final = 0.05
"""Changes within this time are told together; a container that starts asks for itself."""
_LEAST_PATIENCE_SECONDS: Final = 3.0
"""One question may take this long, even where nobody wants to wait."""
_TROUBLE_SECONDS: Final = 2.0
"""How often a daemon that is not ready is asked after, so that its GPU is neither out nor in for longer than it is."""


def demand_for(gpu: ServedGpu, groups: int, enforcement: EnforcementSettings) -> MpsDemand:
    """Return what a daemon must allow so that ``groups`` of ``gpu`` can run there."""
    share = gpu.slice_of(groups)
    return MpsDemand(
        gpu=gpu.facts.uuid,
        sm_percent=share.sm_percent if enforcement.compute else _FULL_PERCENT,
        memory_mib=share.memory_mib if enforcement.memory else _NO_LIMIT_MIB,
    )


def demands_of(view: NodeView, enforcement: EnforcementSettings) -> tuple[MpsDemand, ...]:
    """Return one demand for each GPU that is held, in part or whole, in order of UUID."""
    if not enforcement.uses_mps:
        return ()
    holders = (*view.holders, *view.unlisted)
    largest = largest_fractions(view.offer, holders)
    whole = whole_gpus(view.offer, holders)
    for uuid in whole:
        # An init container and the ones after it, one of them with the whole GPU: they never run at the same time.
        started = view.last_starts.get(uuid)
        if started is None or view.offer.by_uuid[uuid].units.is_whole(started):
            largest.pop(uuid, None)
        else:
            largest[uuid] = max(largest.get(uuid, 0), started)
    whole -= largest.keys()
    shared = tuple(
        demand_for(view.offer.by_uuid[uuid], groups, enforcement) for uuid, groups in sorted(largest.items())
    )
    return (*shared, *(whole_demand(uuid) for uuid in sorted(whole)))


class CeilingKeeper:
    """The one caller of the MPS supervisor."""

    def __init__(
        self,
        state: NodeState,
        control: MpsControl,
        enforcement: EnforcementSettings,
        *,
        needs_account: bool,
        patience_seconds: float = 20.0,
    ) -> None:
        """With ``needs_account`` nothing is asked before kubelet told who holds what.

        A demand that leaves out a tenant of before would lower the limits of a daemon that runs.
        ``patience_seconds`` is how long one container start waits; kubelet gives up after 30.
        """
        self._state = state
        self._control = control
        self._enforcement = enforcement
        self._needs_account = needs_account
        self._patience_seconds = patience_seconds
        self._answering: asyncio.Task[dict[GpuUuid, MpsState]] | None = None
        """The question that is under way, with the demands of when it was put."""
        self._next: asyncio.Task[dict[GpuUuid, MpsState]] | None = None
        """The one after it, for everybody who came later."""
        self._asking: asyncio.Task[dict[GpuUuid, MpsState]] | None = None

    def ask_now(self) -> None:
        """Ask without waiting for the next period: something may have ended the clients of a daemon."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._sync())

    async def prepare(self, gpu: ServedGpu, share: Slice) -> None:
        """Return once the daemon of ``gpu`` answers and allows ``share``; raise MpsUnavailable with the reason."""
        if not self._enforcement.uses_mps:
            return
        wanted = demand_for(gpu, share.groups, self._enforcement)
        await self._until_no(lambda states: _about(gpu, self._problem_of(wanted, states)), _about(gpu, _NO_ANSWER))

    async def prepare_whole(self, gpus: Sequence[ServedGpu]) -> None:
        """Return once no MPS daemon is in the way of a tenant of whole GPUs; raise MpsUnavailable with the reason."""
        if self._enforcement.uses_mps:
            await self._until_no(lambda states: self._problem_of_whole(gpus, states), _NO_ANSWER)

    async def _until_no(self, problem_in: Callable[[dict[GpuUuid, MpsState]], str], problem: str) -> None:
        """Return when there is no problem in the answer; ``problem`` is what is told as long as there is no answer."""
        clock = asyncio.get_running_loop().time
        end = clock() + self._patience_seconds
        try:
            async with asyncio.timeout(max(self._patience_seconds, _LEAST_PATIENCE_SECONDS)):
                while problem := problem_in(await self._sync()):
                    if clock() >= end:
                        raise MpsUnavailable(problem)
                    await asyncio.sleep(_ASK_AGAIN_SECONDS)
        except TimeoutError:
            raise MpsUnavailable(problem) from None

    async def run(self, period_seconds: float = 10.0) -> None:
        """Sync at each change of what is held, and every ``period_seconds``."""
        told: Sequence[MpsDemand] | None = None
        view = self._state.view
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        try:
            while True:
                demands = demands_of(view, self._enforcement)
                if demands != told:
                    await self._sync()
                    told, asked_at = demands, clock()
                try:
                    # However often the view changes meanwhile, the supervisor is asked at the end of each period.
                    async with asyncio.timeout_at(asked_at + self._rest_seconds(period_seconds)):
                        await self._state.change_after(view)
                    await asyncio.sleep(_GATHER_SECONDS)
                    view = self._state.view
                except TimeoutError:
                    told = None
        finally:
            for task in (self._answering, self._next, self._asking):
                if task:
                    task.cancel()

    def _rest_seconds(self, period_seconds: float) -> float:
        all_ready = all(state.ready for state in self._state.view.mps.values())
        return period_seconds if all_ready else min(period_seconds, _TROUBLE_SECONDS)

    async def _sync(self) -> dict[GpuUuid, MpsState]:
        """Ask, together with everybody who asks while an earlier question is under way.

        A daemon that does not answer makes a question take seconds. However many containers wait for it, one for
        another GPU waits for two questions at most.
        """
        if self._needs_account and not self._state.view.holders_are_known:
            return {}
        if self._next is None:
            self._next = asyncio.create_task(self._ask_after(self._answering))
        # Who gives up must not take the question from the others.
        return await asyncio.shield(self._next)

    async def _ask_after(self, before: asyncio.Task[dict[GpuUuid, MpsState]] | None) -> dict[GpuUuid, MpsState]:
        if before:
            await asyncio.wait([before])
        self._answering, self._next = self._next, None
        demands = demands_of(self._state.view, self._enforcement)
        asked_at = self._state.now()
        states = dict(await self._control.sync(demands, generation=self._state.view.generation))
        shared = (demand.gpu for demand in demands if not demand.whole)
        self._state.learn_mps({gpu: states[gpu] for gpu in shared if gpu in states}, asked_at=asked_at)
        return states

    def _problem_of_whole(self, gpus: Sequence[ServedGpu], states: dict[GpuUuid, MpsState]) -> str:
        """Return why a container that has these GPUs whole must wait; empty when it need not.

        Without a supervisor the GPU itself tells: no daemon keeps others off where the compute mode is Default.
        """
        if self._needs_account and not self._state.view.holders_are_known:
            return self._not_counted()
        for gpu in gpus:
            state = states.get(gpu.facts.uuid)
            if state is None or not state.is_told:
                if gpu.facts.compute_mode not in {None, ComputeMode.DEFAULT}:
                    return _about(gpu, f"its compute mode is {gpu.facts.compute_mode}; {state.reason if state else ''}")
            elif not state.ready:
                return _about(gpu, state.reason)
        return ""

    def _not_counted(self) -> str:
        problem = self._state.view.account_problem
        return f"{_NOT_COUNTED}: {problem}" if problem else _NOT_COUNTED

    def _problem_of(self, wanted: MpsDemand, states: dict[GpuUuid, MpsState]) -> str:
        """Return why a container with ``wanted`` must wait; empty when it need not."""
        if self._needs_account and not self._state.view.holders_are_known:
            return self._not_counted()
        state = states.get(wanted.gpu)
        if state is None:
            return "the MPS supervisor does not answer for this GPU"
        if not state.ready:
            return state.reason
        if state.sm_percent < wanted.sm_percent:
            return f"its MPS daemon allows {state.sm_percent} % of the SMs, and {wanted.sm_percent} % are needed"
        if state.memory_mib and not wanted.memory_mib <= state.memory_mib:
            return f"its MPS daemon allows {state.memory_mib} MiB, and {wanted.memory_mib} MiB are needed"
        return ""


def _about(gpu: ServedGpu, problem: str) -> str:
    return problem and f"GPU {gpu.facts.index} ({gpu.facts.uuid}): {problem}"
