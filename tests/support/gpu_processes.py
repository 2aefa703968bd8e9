"""Processes of a test on a real GPU: those it starts, and those that the supervisor started for it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

CONTROL_DAEMON: Final = "nvidia-cuda-mps-control"
SERVER: Final = "nvidia-cuda-mps-server"

_COMMAND = "import sys; from cta_group_plugin.cli import main; sys.exit(main())"
_END_SECONDS = 30


@contextmanager
def plugin_command(words: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``cta-group-plugin WORDS`` until the block ends; SIGTERM first, killed when that does not end it."""
    command = [sys.executable, "-c", _COMMAND, *words]  # works from a checkout that is not installed, too
    with log.open("ab") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(_END_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()


def mps_processes(mps_root: Path, name: str = "") -> list[int]:
    """Return the processes whose MPS folder lies below ``mps_root``, all of them or those of one program.

    Their environment says so, so no process of anybody else is ever among them.
    """
    mark = f"CUDA_MPS_PIPE_DIRECTORY={mps_root}/".encode()
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "environ").read_bytes() and _is_program(folder, name):
                found.append(int(folder.name))
    return sorted(found)


def kill_mps_processes(mps_root: Path) -> None:
    """End daemons and servers that are left below ``mps_root``."""
    for pid in mps_processes(mps_root):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _is_program(folder: Path, name: str) -> bool:
    command, *arguments = (folder / "cmdline").read_bytes().split(b"\0")
    if not command or name not in command.decode(errors="replace"):
        return False
    # Under the daemon's name also runs, for a moment, whatever passes a command on to it: without a flag.
    return name != CONTROL_DAEMON or b"-f" in arguments
