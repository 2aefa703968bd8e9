"""A process that uses a real GPU, as an object of the test: the program ``tests/gpu/cuda_client.py``."""

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

PROGRAM: Final = Path(__file__).parents[1] / "gpu" / "cuda_client.py"

_ANSWER_SECONDS: Final = 60.0
_END_SECONDS: Final = 10.0

Answer = dict[str, Any]
Stream = TypeVar("Stream")


class ClientRefused(Exception):
    """The driver let the process have no GPU; the text says which call failed and how."""


class GpuClient:
    """A process with a context on the GPU. Make it with :func:`gpu_client`."""

    def __init__(self, process: asyncio.subprocess.Process, hello: Answer) -> None:
        self._process = process
        self.hello = hello
        """What it saw when it connected: ``sms``, ``free_mib``, ``total_mib``, ``connect_seconds``."""
        self.pid: int = hello["pid"]

    async def ask(self, command: str, *, seconds: float = _ANSWER_SECONDS) -> Answer:
        """Let it do one command and return the answer; ``{"error": ...}`` also when the process has ended."""
        stdin = _present(self._process.stdin)
        try:
            stdin.write(json.dumps({"do": command}).encode() + b"\n")
            await stdin.drain()
        except ConnectionError:
            pass  # what it left unread tells
        return await _read(self._process, seconds)

    async def is_dead(self) -> bool:
        """Tell whether the GPU is lost to it; it is asked to use it."""
        return "error" in await self.ask("touch")

    async def end(self) -> None:
        """End it as a program ends; killed when it does not."""
        _present(self._process.stdin).close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End it as the kernel ends a process that took too much; safe at any time."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def gpu_client(environment: Mapping[str, str], folder: Path, *, user_id: int = 0) -> AsyncIterator[GpuClient]:
    """Run a client until the block ends. ``folder`` can be reached by every user. Raises ClientRefused."""
    program = folder / PROGRAM.name
    if not program.exists():
        shutil.copyfile(PROGRAM, program)
        program.chmod(0o644)
    process = await asyncio.create_subprocess_exec(
        *_as_user(user_id),
        _interpreter(),
        str(program),
        env=environment,
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        hello = await _read(process, _ANSWER_SECONDS)
        if "error" in hello:
            raise ClientRefused(f"{hello['error']}")
        client = GpuClient(process, hello)
        yield client
        await client.end()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _as_user(user_id: int) -> list[str]:
    """Return what changes the user id before the program begins.

    Not by Python's own ``user`` argument: it forks where it could vfork, and gRPC does not survive a fork every time.
    """
    return ["setpriv", f"--reuid={user_id}", f"--regid={user_id}", "--clear-groups"] if user_id else []


def _interpreter() -> str:
    """Return a Python that every user can run; one below somebody's home folder cannot be reached."""
    system = Path("/usr/bin/python3")
    return str(system if system.exists() else Path(sys.executable).resolve())


async def _read(process: asyncio.subprocess.Process, seconds: float) -> Answer:
    async with asyncio.timeout(seconds):
        line = await _present(process.stdout).readline()
        if line:
            answer: Answer = json.loads(line)
            return answer
        return {"error": {"call": "", "name": f"the process ended with {await process.wait()}"}}


def _present(stream: Stream | None) -> Stream:
    assert stream is not None
    return stream
