"""The backend ``percentage``: one active thread percentage and one memory limit for all clients of a GPU's daemon.

Each client can only lower them for itself. Sets the limits and reads back that they took.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from cta_group_core.ids import GpuUuid
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.mps.backend import Ceiling
from cta_group_plugin.mps.control import MemoryLimit, MpsControlClient
from cta_group_plugin.ports import MpsDemand


class PercentageBackend:
    """Implements :class:`cta_group_plugin.mps.backend.LimitBackend`; every driver since Volta's MPS has it."""

    name = "percentage"

    def __init__(self, driver: str) -> None:
        """``driver`` tells in messages which driver did not do what it was told."""
        self._driver = driver

    async def apply(self, control: MpsControlClient, demand: MpsDemand, servers: Sequence[int]) -> Ceiling:
        """Set what differs from the demand; later clients get it, those that are connected keep what they have."""
        percent = _Percent(demand.gpu, self._driver, demand.sm_percent)
        memory = _Memory(demand.gpu, self._driver, demand.memory_mib)
        await percent.ensure("the daemon", control.default_percent, control.set_default_percent)
        await memory.ensure("the daemon", control.default_memory, control.set_default_memory_mib)
        for server in servers:
            name = f"server {server}"
            await percent.ensure(name, partial(control.percent, server), partial(control.set_percent, server))
            await memory.ensure(name, partial(control.memory, server), partial(control.set_memory_mib, server))
        return Ceiling(sm_percent=demand.sm_percent, memory_mib=demand.memory_mib)


@dataclass(frozen=True, slots=True)
class _Percent:
    gpu: GpuUuid
    driver: str
    wanted: int

    async def ensure(
        self, who: str, read: Callable[[], Awaitable[float]], write: Callable[[int], Awaitable[None]]
    ) -> None:
        if await read() == self.wanted:
            return
        await write(self.wanted)
        found = await read()
        if found != self.wanted:
            raise _not_taken(self.gpu, self.driver, who, f"an active thread percentage of {self.wanted}", f"{found:g}")


@dataclass(frozen=True, slots=True)
class _Memory:
    gpu: GpuUuid
    driver: str
    wanted_mib: int

    async def ensure(
        self, who: str, read: Callable[[], Awaitable[MemoryLimit | None]], write: Callable[[int], Awaitable[None]]
    ) -> None:
        # Written even when the daemon prints the right text: it prints whole GiB, so another limit may look the same.
        await write(self.wanted_mib)
        found = await read()
        if not self._can_be(found):
            told = "none" if found is None else f"one of {found.least_mib} MiB"
            wanted = f"a memory limit of {self.wanted_mib} MiB" if self.wanted_mib else "no memory limit"
            raise _not_taken(self.gpu, self.driver, who, wanted, told)

    def _can_be(self, found: MemoryLimit | None) -> bool:
        return found is None if self.wanted_mib == 0 else found is not None and found.may_be(self.wanted_mib)


def _not_taken(gpu: GpuUuid, driver: str, who: str, wanted: str, found: str) -> MpsUnavailable:
    return MpsUnavailable(
        f"GPU {gpu}: {who} of MPS accepted {wanted} and has {found} instead ({driver}); slices are not enforced"
    )
