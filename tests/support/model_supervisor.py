"""An MPS supervisor for sequences of events: it obeys, and notes when it is told to harm somebody who runs."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cta_group_core.ids import GpuUuid
from cta_group_plugin.ports import MpsDemand, MpsState


@dataclass(frozen=True, slots=True)
class Client:
    """A container that runs on a part of a GPU, or on the whole of it."""

    name: str
    sm_percent: int
    memory_mib: int
    whole: bool = False


class ModelSupervisor:
    """One daemon for each GPU that is shared. Daemons outlive plugins; a reboot ends them."""

    def __init__(self, chance: random.Random, clients_of: Callable[[GpuUuid], Sequence[Client]]) -> None:
        self.daemons: dict[GpuUuid, tuple[int, int]] = {}
        """Ceiling of each daemon: percent and MiB."""
        self.silent: set[GpuUuid] = set()
        """GPUs whose daemon does not answer."""
        self.is_away = False
        self.harm: list[str] = []
        """Every demand that took something from a container that ran."""
        self._chance = chance
        self._clients_of = clients_of
        self._generation = 0

    def restart(self) -> None:
        """Begin anew beside the daemons that are there."""
        self._generation = 0

    async def sync(self, demands: Sequence[MpsDemand], *, generation: int = 0) -> Mapping[GpuUuid, MpsState]:
        """Obey the newest plugin, after a moment."""
        await asyncio.sleep(self._chance.choice((0.0, 0.01, 0.3)))
        if self.is_away:
            away = MpsState(ready=False, reason="the supervisor does not answer", is_told=False)
            return {demand.gpu: away for demand in demands}
        if generation >= self._generation:
            self._generation = generation
            self._obey(demands)
        return {demand.gpu: self._state(demand) for demand in demands}

    async def close(self) -> None:
        """Nothing to release."""

    def _obey(self, demands: Sequence[MpsDemand]) -> None:
        wanted = {demand.gpu: demand for demand in demands}
        for gpu in [gpu for gpu in self.daemons if gpu not in wanted or wanted[gpu].whole]:
            shared = [client.name for client in self._clients_of(gpu) if not client.whole]
            if shared and gpu not in wanted:
                self.harm.append(f"the daemon of {gpu} is not wanted though {shared} run")
            elif not shared:
                del self.daemons[gpu]
        for gpu, demand in wanted.items():
            if not demand.whole and gpu not in self.silent:
                self._limit(demand)

    def _limit(self, demand: MpsDemand) -> None:
        for client in self._clients_of(demand.gpu):
            if client.whole:
                self.harm.append(f"a daemon is wanted on {demand.gpu} though {client.name} has it whole")
            elif demand.sm_percent < client.sm_percent or demand.memory_mib < client.memory_mib:
                self.harm.append(
                    f"{demand.gpu} is limited to {demand.sm_percent} % and {demand.memory_mib} MiB though {client} runs"
                )
        self.daemons[demand.gpu] = (demand.sm_percent, demand.memory_mib)

    def _state(self, demand: MpsDemand) -> MpsState:
        if demand.whole:
            is_free = demand.gpu not in self.daemons
            return MpsState(ready=is_free, reason="" if is_free else "its MPS daemon still has clients")
        if demand.gpu in self.silent or demand.gpu not in self.daemons:
            return MpsState(ready=False, reason="its MPS daemon does not answer")
        percent, memory_mib = self.daemons[demand.gpu]
        return MpsState(ready=True, reason="", sm_percent=percent, memory_mib=memory_mib)
