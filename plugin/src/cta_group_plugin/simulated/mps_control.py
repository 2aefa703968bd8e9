"""A simulated ``nvidia-cuda-mps-control``: same flags, same commands, no GPU. For tests, demos and simulated nodes.

Run it as ``python -m cta_group_plugin.simulated.mps_control``.

- With ``-f`` it is the daemon of the folder that ``CUDA_MPS_PIPE_DIRECTORY`` names, in the foreground (``-M``, several
  user ids, is accepted: every user id may connect). Its log goes to ``CUDA_MPS_LOG_DIRECTORY``.
- Without flags it is the client: it reads commands from standard input, one a line, and prints the daemon's answers.
  Exit code 1 when no daemon answers; a command that makes no sense is no failure, as with NVIDIA's.

Files in the pipe folder:

``simulated.sock``
    The daemon's socket; everybody may connect. One line is asked, the answer follows.
    ``hello`` makes the connection a client of MPS, for as long as it stays open; the kernel says which process it is,
    or a test does with ``hello <pid>``. The answer is one line of JSON:
    ``{"sm_percent": 25, "memory_mib": 17766}``, the most that this client may use whatever its own environment says
    (``memory_mib`` is null when memory is not limited), or ``{"error": "..."}`` when the client is refused, after
    which the daemon closes. A daemon that dies closes too: its clients are dead then, as NVIDIA's are.
    Any other line is a command; the answer is ``ok``, then the text.
``simulated-faults``
    Faults on demand, one a line, read at every question; remove the file or the line and all is well again.
    ``no-answer`` answers nothing as long as it is there. ``fault``: the server is in state FAULT and takes no clients.
    ``clients-full``: the client table is full. ``ignore-memory``: memory limits are accepted and not applied;
    ``ignore-server-memory``: those of a running server are not.
    ``crash``: the daemon dies at the next question. ``server-crash``: its server does, with its clients; the next
    client starts another. ``slow-start SECONDS``: before it listens, at its start. ``stays``: it answers ``quit``,
    listens no more and does not end.
``simulated-state.json``
    Limits and clients at the last change, to look at.
``nvidia-cuda-mps-control.pid``
    Process id of the daemon, empty after it has quit.
"""

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

_DEFAULT_PIPE = "/tmp/nvidia-mps"  # noqa: S108 - NVIDIA's own default; the supervisor always names another
_DEFAULT_LOG = "/var/log/nvidia-mps"


def main(arguments: Sequence[str] | None = None) -> int:
    """Be the daemon or the client; return the exit code."""
    parser = argparse.ArgumentParser(prog="simulated-mps-control", description=__doc__.partition("\n")[0])
    parser.add_argument("-f", dest="foreground", action="store_true", help="be the daemon, in the foreground")
    parser.add_argument("-M", dest="multi_user", action="store_true", help="take clients of every user id")
    parsed = parser.parse_args(arguments)
    # It stands for a program that is configured by these variables, so this is its command line.
    pipe_folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", _DEFAULT_PIPE))
    if not parsed.foreground:
        return run_client(pipe_folder, sys.stdin)
    return run_daemon(pipe_folder, Path(os.environ.get("CUDA_MPS_LOG_DIRECTORY", _DEFAULT_LOG)))


def run_daemon(pipe_folder: Path, log_folder: Path) -> int:
    """Serve the folder until ``quit``."""
    # The client starts once for each command, so it must not pay for these imports.
    import asyncio  # noqa: PLC0415

    from cta_group_plugin.simulated.mps_daemon import AlreadyRunning, SimulatedDaemon  # noqa: PLC0415

    async def serve() -> None:
        await SimulatedDaemon(pipe_folder, log_folder / "control.log").serve()

    try:
        asyncio.run(serve())
    except (AlreadyRunning, OSError) as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


def run_client(pipe_folder: Path, commands: TextIO) -> int:
    """Ask the daemon each command and print what it says."""
    for line in commands:
        if not line.strip():
            continue
        try:
            _, _, text = _ask(pipe_folder, line.strip()).partition("\n")
        except ConnectionResetError:
            sys.stderr.write("Cannot send command to MPS control daemon process\n")
            return 1
        except OSError:
            sys.stderr.write("Cannot find MPS control daemon process\n")
            return 1
        sys.stdout.write(text)
    return 0


def _ask(pipe_folder: Path, line: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(pipe_folder / "simulated.sock"))
        connection.sendall(f"{line}\n".encode())
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    if not answer:
        raise ConnectionResetError("the daemon closed without an answer")
    return answer.decode()


if __name__ == "__main__":
    sys.exit(main())
