"""Asks one control daemon: one command, one short-lived client process, always with a time limit."""

import asyncio
import re
from dataclasses import dataclass
from enum import StrEnum

from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.mps.folders import MpsFolders
from cta_group_plugin.mps.program import ControlProgram, ProgramUnusable

_DEVICE = "0"
"""The one GPU that the daemon sees. Not its UUID: not every driver applies a default memory limit that names one."""

_MIB_BY_SUFFIX = {"M": 1, "G": 1024}
_SHOWN_CHARACTERS = 200


class NoDaemon(MpsUnavailable):
    """The client ended with an error at once: no daemon serves the folder, or it refused the command."""


class SilentDaemon(MpsUnavailable):
    """Something serves the folder and does not answer in time."""


class ServerStatus(StrEnum):
    """NVIDIA's words for the state of a server."""

    INITIALIZING = "INITIALIZING"
    ACTIVE = "ACTIVE"
    FAULT = "FAULT"
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A memory limit as the daemon tells it: R580 prints 17G for 17766M, 512M for 512M, and applies every MiB."""

    least_mib: int
    unit_mib: int

    def may_be(self, memory_mib: int) -> bool:
        """Tell whether the daemon prints this for a limit of ``memory_mib``."""
        return self.least_mib <= memory_mib < self.least_mib + self.unit_mib


class MpsControlClient:
    """Commands to the daemon of one GPU. Every method raises MpsUnavailable, with the GPU and the command named."""

    def __init__(self, program: ControlProgram, folders: MpsFolders, *, timeout_seconds: float) -> None:
        self._program = program
        self._folders = folders
        self._timeout_seconds = timeout_seconds

    async def servers(self) -> tuple[int, ...]:
        """Return the process ids of the servers; the first client starts one. The cheapest sign of life."""
        return await self._numbers("get_server_list")

    async def server_status(self, server: int) -> ServerStatus:
        """Return the state of a server."""
        answer = (await self._ask(f"get_server_status {server}")).strip().upper()
        return ServerStatus(answer) if answer in ServerStatus.__members__ else ServerStatus.OTHER

    async def clients(self, server: int) -> tuple[int, ...]:
        """Return the process ids of the clients of a server."""
        return await self._numbers(f"get_client_list {server}")

    async def default_percent(self) -> float:
        """Return the active thread percentage that the next server will begin with."""
        return await self._percent("get_default_active_thread_percentage")

    async def set_default_percent(self, percent: int) -> None:
        """Set it."""
        await self._ask(f"set_default_active_thread_percentage {percent}")

    async def percent(self, server: int) -> float:
        """Return the active thread percentage that the next client of a running server gets at most."""
        return await self._percent(f"get_active_thread_percentage {server}")

    async def set_percent(self, server: int, percent: int) -> None:
        """Set it; clients that are connected keep theirs."""
        await self._ask(f"set_active_thread_percentage {server} {percent}")

    async def default_memory(self) -> MemoryLimit | None:
        """Return the memory limit that the next server will begin with; None when it has none."""
        return await self._memory(f"get_default_device_pinned_mem_limit {_DEVICE}")

    async def set_default_memory_mib(self, memory_mib: int) -> None:
        """Set it; 0 removes it."""
        await self._ask(f"set_default_device_pinned_mem_limit {_DEVICE} {memory_mib}M")

    async def memory(self, server: int) -> MemoryLimit | None:
        """Return the memory limit that the next client of a running server gets at most; None when it has none."""
        return await self._memory(f"get_device_pinned_mem_limit {server} {_DEVICE}")

    async def set_memory_mib(self, server: int, memory_mib: int) -> None:
        """Set it; 0 removes it."""
        await self._ask(f"set_device_pinned_mem_limit {server} {_DEVICE} {memory_mib}M")

    async def quit(self) -> None:
        """Ask the daemon and its servers to end; with clients it answers only when they are gone."""
        await self._ask("quit")

    async def _numbers(self, command: str) -> tuple[int, ...]:
        answer = await self._ask(command)
        if not all(word.isdecimal() for word in answer.split()):
            raise MpsUnavailable(f"{self._about(command)} answered {_shown(answer)}, not process ids")
        return tuple(int(word) for word in answer.split())

    async def _percent(self, command: str) -> float:
        answer = (await self._ask(command)).strip()
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", answer):
            raise MpsUnavailable(f"{self._about(command)} answered {_shown(answer)}, not a percentage")
        return float(answer)

    async def _memory(self, command: str) -> MemoryLimit | None:
        answer = (await self._ask(command)).strip()
        if not answer:
            return None
        found = re.fullmatch(r"([0-9]+)([MG])", answer)
        if found is None:
            raise MpsUnavailable(f"{self._about(command)} answered {_shown(answer)}, not a memory limit")
        unit_mib = _MIB_BY_SUFFIX[found[2]]
        return MemoryLimit(least_mib=int(found[1]) * unit_mib, unit_mib=unit_mib)

    async def _ask(self, command: str) -> str:
        process = await self._started(command)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                output, _ = await process.communicate(f"{command}\n".encode())
        except TimeoutError:
            raise SilentDaemon(f"{self._about(command)} was not answered in {self._timeout_seconds:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        text = output.decode("utf-8", errors="replace")
        if process.returncode != 0:
            raise NoDaemon(f"{self._about(command)} failed: {_shown(text)}")
        return text

    async def _started(self, command: str) -> asyncio.subprocess.Process:
        argv = self._program.command()
        try:
            return await asyncio.create_subprocess_exec(
                *argv,
                env=self._program.environment_for(self._folders),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
        except OSError as error:
            raise ProgramUnusable(f"{self._about(command)} could not be asked: {argv[0]}: {error}") from error

    def _about(self, command: str) -> str:
        return f"GPU {self._folders.gpu}: MPS command {command!r}"


def _shown(answer: str) -> str:
    words = " ".join(answer.split())
    return repr(words[:_SHOWN_CHARACTERS]) if words else "nothing"
