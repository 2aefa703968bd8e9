"""Outlives whoever wanted a cluster for as long as it takes to remove every trace of it.

The warden starts the supervisor (in namespaces of its own where the cluster has a node) and waits until its own
standard input ends, which happens when the owner closes it or dies in whatever way, or until it is told to end by
SIGTERM. Then it ends the supervisor and with it every process, and removes the cgroups and the state folder. A
warden that is killed itself takes the cluster's processes with it; the folder it leaves is swept at the next start.
"""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from cluster_harness.state_folder import DETACH, NODE_PLAN, WARDEN_PID, remove_state

_END_TIMEOUT_SECONDS = 20.0
_NAMESPACES = ("--pid", "--net", "--mount", "--uts", "--ipc", "--fork", "--kill-child=KILL")


def main() -> None:
    """Run the supervisor of the state folder given as the first argument, and clean up behind it."""
    folder = Path(sys.argv[1])
    (folder / WARDEN_PID).write_text(str(os.getpid()))
    told_to_end = _wake_on_signals()
    supervisor = _start_supervisor(folder, private=(folder / NODE_PLAN).exists())
    _wait(told_to_end, os.pidfd_open(supervisor.pid))
    _end(supervisor)
    remove_state(folder)


def _wait(*reasons: int) -> None:
    """Return when one of the descriptors becomes readable, or standard input ends without a DETACH before."""
    ready, _, _ = select.select([sys.stdin.fileno(), *reasons], [], [])
    if ready == [sys.stdin.fileno()] and os.read(sys.stdin.fileno(), len(DETACH)) == DETACH:
        select.select(reasons, [], [])


def _wake_on_signals() -> int:
    """Return a descriptor that becomes readable when the warden is told to end."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reading


def _start_supervisor(folder: Path, *, private: bool) -> subprocess.Popen[bytes]:
    """Start the supervisor on a pipe; it ends when this process closes the pipe or dies."""
    namespaces = ("unshare", *_NAMESPACES) if private else ()
    argv = ["setpriv", "--pdeathsig", "KILL", *namespaces, sys.executable, "-m", "cluster_harness.supervisor"]
    return subprocess.Popen([*argv, str(folder)], stdin=subprocess.PIPE)


def _end(supervisor: subprocess.Popen[bytes]) -> None:
    if supervisor.stdin is not None:
        supervisor.stdin.close()
    try:
        supervisor.wait(_END_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()


if __name__ == "__main__":
    main()
