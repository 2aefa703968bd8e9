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

from cluster_harness import cgroups
from cluster_harness.state_folder import NODE_PLAN, remove_state

_END_TIMEOUT_SECONDS = 20.0
_NAMESPACES = ("--pid", "--net", "--mount", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child=KILL")


def main() -> None:
    """Run the supervisor for the state folder of the first argument; ``--detached`` ignores standard input."""
    folder = Path(sys.argv[1])
    private = (folder / NODE_PLAN).exists()
    wake = _wake_on_signals()
    supervisor = _start_supervisor(folder, private=private)
    watched: list[int] = [wake] if "--detached" in sys.argv else [wake, sys.stdin.fileno()]
    pidfd = os.pidfd_open(supervisor.pid)
    select.select([*watched, pidfd], [], [])
    _end(supervisor)
    remove_state(folder)


def _wake_on_signals() -> int:
    """Return a descriptor that becomes readable when the warden is told to end."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reading


def _start_supervisor(folder: Path, *, private: bool) -> subprocess.Popen[bytes]:
    """Start the supervisor on a pipe; it ends when this process closes the pipe or dies."""
    argv = [sys.executable, "-m", "cluster_harness.supervisor", str(folder)]
    if not private:
        return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *argv], stdin=subprocess.PIPE)
    with cgroups.inside(folder.name):
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", *_NAMESPACES, *argv], stdin=subprocess.PIPE
        )


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
