"""Processes of this machine, told apart by their start time: a process id alone is given out again."""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_ENDED_STATES: Final = frozenset("ZX")  # proc(5): zombie, dead
# Fields of /proc/PID/stat behind the name in parentheses (proc(5)): state is the first of them.
_STATE, _SESSION, _START = 0, 3, 19


@dataclass(frozen=True, slots=True)
class Process:
    """One process, for good."""

    pid: int
    started_ticks: int
    """Clock ticks after the machine's boot."""

    @classmethod
    def with_pid(cls, pid: int) -> "Process | None":
        """Return the process that runs with this id; None when none does, or none that is visible from here."""
        fields = _stat(pid)
        return None if fields is None else cls(pid=pid, started_ticks=int(fields[_START]))

    def is_alive(self) -> bool:
        """Tell whether this very process runs; one that waits for its parent to notice its end does not."""
        return Process.with_pid(self.pid) == self


def in_session_of(leader: Process) -> list[Process]:
    """Return the living processes of a session, the leader first; empty when the leader has ended."""
    if not leader.is_alive():
        return []
    found = [leader]
    for folder in _PROC.iterdir():
        if folder.name.isdecimal() and (pid := int(folder.name)) != leader.pid:
            fields = _stat(pid)
            if fields is not None and int(fields[_SESSION]) == leader.pid:
                found.append(Process(pid=pid, started_ticks=int(fields[_START])))
    return found


def kill(processes: Iterable[Process]) -> None:
    """End processes at once; one that has ended by itself is none of our business, nor is its successor."""
    for process in processes:
        with suppress(ProcessLookupError):
            held = os.pidfd_open(process.pid)
            try:
                if process.is_alive():
                    signal.pidfd_send_signal(held, signal.SIGKILL)
            finally:
                os.close(held)


def _stat(pid: int) -> list[str] | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[_STATE] in _ENDED_STATES else fields
