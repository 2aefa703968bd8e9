"""Makes the limits of a daemon, and of the servers it runs, the demanded ones, and reads back that they are.

This is the backend ``percentage``: one ceiling for all clients of a GPU, which each client can only lower. Another way
to enforce (static partitions, namespaces) would be another module with the same one function.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from cta_group_core.ids import GpuUuid
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.mps.control import MpsControlClient
from cta_group_plugin.ports import MpsDemand

UNLIMITED_MIB: Final = 1 << 20
"""A memory limit above every GPU, for a daemon that has one and shall have none: no command removes it."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What new clients get at most, as the daemon said."""

    sm_percent: int
    memory_mib: int
    """0: not limited."""


async def apply_limits(control: MpsControlClient, demand: MpsDemand, servers: Sequence[int]) -> Ceiling:
    """Set what differs from the demand and return what is true then. Raises MpsUnavailable when it does not take.

    Later clients get the new limits; those that are connected keep theirs.
    """
    percent = _Percent(demand.gpu, demand.sm_percent)
    memory = _Memory(demand.gpu, demand.memory_mib)
    await percent.ensure("the daemon", control.default_percent, control.set_default_percent)
    await memory.ensure("the daemon", control.default_memory_mib, control.set_default_memory_mib)
    for server in servers:
        name = f"server {server}"
        await percent.ensure(name, partial(control.percent, server), partial(control.set_percent, server))
        await memory.ensure(name, partial(control.memory_mib, server), partial(control.set_memory_mib, server))
    return Ceiling(sm_percent=demand.sm_percent, memory_mib=demand.memory_mib)


@dataclass(frozen=True, slots=True)
class _Percent:
    gpu: GpuUuid
    wanted: int

    async def ensure(
        self, who: str, read: Callable[[], Awaitable[float]], write: Callable[[int], Awaitable[None]]
    ) -> None:
        if await read() == self.wanted:
            return
        await write(self.wanted)
        found = await read()
        if found != self.wanted:
            raise _not_taken(self.gpu, who, f"an active thread percentage of {self.wanted}", f"{found:g}")


@dataclass(frozen=True, slots=True)
class _Memory:
    gpu: GpuUuid
    wanted_mib: int

    async def ensure(
        self, who: str, read: Callable[[], Awaitable[int | None]], write: Callable[[int], Awaitable[None]]
    ) -> None:
        if self._is_right(await read()):
            return
        await write(self.wanted_mib or UNLIMITED_MIB)
        found = await read()
        if not self._is_right(found):
            told = "none" if found is None else f"{found} MiB"
            raise _not_taken(self.gpu, who, f"a memory limit of {self.wanted_mib or UNLIMITED_MIB} MiB", told)

    def _is_right(self, found_mib: int | None) -> bool:
        if self.wanted_mib == 0:
            return found_mib is None or found_mib >= UNLIMITED_MIB
        return found_mib == self.wanted_mib


def _not_taken(gpu: GpuUuid, who: str, wanted: str, found: str) -> MpsUnavailable:
    return MpsUnavailable(f"GPU {gpu}: {who} of MPS accepted {wanted} and has {found} instead; slices are not enforced")
