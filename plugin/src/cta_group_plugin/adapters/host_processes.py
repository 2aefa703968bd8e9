"""Processes of the host, by the files that the kernel shows of each below ``/proc``. Every method blocks, shortly."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from cta_group_plugin.gpu_source import ProcessFacts
from cta_group_plugin.pod_cgroups import PodOfProcess, pod_of_cgroup

_HOST_PID_NAMESPACE: Final = 0xEFFFFFFC
"""Inode of the machine's own process-id namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO)."""
# Fields of /proc/PID/stat behind the name in parentheses (proc(5)).
_STATE, _FLAGS, _THREADS, _START = 0, 6, 17, 19
_ENDED_STATES: Final = frozenset("ZX")
_EXITING: Final = 0x4
"""PF_EXITING (include/linux/sched.h): it gives back what it had."""


class HostProcesses:
    """Implements :class:`cta_group_plugin.gpu_source.Processes`."""

    def __init__(self, folder: Path = Path("/proc")) -> None:
        """``folder`` is a mount of the proc file system whose processes are those that the driver names."""
        self._folder = folder
        self.sees_all = _namespace(folder) == _HOST_PID_NAMESPACE

    def look(self, pids: Iterable[int]) -> Mapping[int, ProcessFacts]:
        """Return what is known of each process; one that is gone, or of a namespace beside this one, is left out."""
        found = ((pid, self._facts(pid)) for pid in pids if pid > 0)
        return {pid: facts for pid, facts in found if facts is not None}

    def _facts(self, pid: int) -> ProcessFacts | None:
        try:
            name, _, rest = self._read(pid, "stat").partition("(")[2].rpartition(")")
        except OSError:
            return None
        fields = rest.split()
        # The first thread of a program may end before the others: it is a zombie then, and the program lives.
        is_last_thread = int(fields[_THREADS]) <= 1
        is_ending = fields[_STATE] in _ENDED_STATES or bool(int(fields[_FLAGS]) & _EXITING)
        return ProcessFacts(int(fields[_START]), _shown(name), is_last_thread and is_ending, self._pod(pid))

    def _pod(self, pid: int) -> PodOfProcess | None:
        try:
            return pod_of_cgroup(self._read(pid, "cgroup"))
        except OSError:
            return None

    def _read(self, pid: int, name: str) -> str:
        return (self._folder / str(pid) / name).read_text(encoding="utf-8", errors="replace")


def _shown(name: str) -> str:
    """Return a name that is safe to show: a process can call itself anything, escape sequences of a terminal too."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _namespace(folder: Path) -> int | None:
    try:
        return (folder / "self/ns/pid").stat().st_ino
    except OSError:
        return None
