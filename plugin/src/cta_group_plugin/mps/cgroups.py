"""A cgroup for each MPS daemon, outside the supervisor's pod.

A container runtime ends a container by killing what is in its cgroups. A daemon there would end with the supervisor's
container, and its clients with it, so each daemon is moved to ``cta-group-mps/<GPU>`` at the top of every hierarchy
(docs/decisions/0006-daemons-outlive-their-pod.md). Nothing is limited there.
"""

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cta_group_core.ids import GpuUuid
from cta_group_plugin.errors import MpsUnavailable

PARENT_NAME: Final = "cta-group-mps"

_MOUNTS: Final = Path("/proc/self/mountinfo")
_MOUNT_POINT_FIELD: Final = 4  # proc_pid_mountinfo(5)
_CGROUP_KINDS: Final = frozenset({"cgroup", "cgroup2"})
# A version 1 cpuset takes no process before these two are set.
_CPUSET_FILES: Final = ("cpuset.cpus", "cpuset.mems")
_CLONE_NEWCGROUP: Final = 0x02000000  # linux/sched.h; os.setns comes with Python 3.12
_OURS: Final = Path("/proc/self/ns/cgroup")


@dataclass(frozen=True, slots=True)
class DaemonCgroups:
    """The hierarchies of the host, by the folders where their top is visible here."""

    hierarchies: Sequence[Path]

    @classmethod
    def below(cls, root: Path) -> Self:
        """Find the hierarchies that are mounted at ``root`` or below. Raises MpsUnavailable when there is none."""
        found = [path for path in _cgroup_mounts(_MOUNTS.read_text(encoding="utf-8")) if path.is_relative_to(root)]
        if not found:
            raise MpsUnavailable(f"--cgroup-root={root}: no cgroup hierarchy is mounted there")
        return cls(tuple(found))

    def take_out(self, pid: int, gpu: GpuUuid) -> None:
        """Move a process that has no child yet to the cgroups of ``gpu``. Raises MpsUnavailable."""
        for hierarchy in self.hierarchies:
            own = hierarchy / PARENT_NAME / gpu
            try:
                for folder in (own.parent, own):
                    folder.mkdir(exist_ok=True)
                    _inherit_cpuset(folder)
                (own / "cgroup.procs").write_text(f"{pid}\n", encoding="ascii")
            except OSError as error:
                raise MpsUnavailable(
                    f"GPU {gpu}: its MPS daemon cannot be moved to the cgroup {own}: {error}"
                ) from error

    def has(self, pid: int, gpu: GpuUuid) -> bool:
        """Tell whether a process is in the cgroups of ``gpu``, all of them."""
        files = [hierarchy / PARENT_NAME / gpu / "cgroup.procs" for hierarchy in self.hierarchies]
        return all(file.exists() and str(pid) in file.read_text(encoding="ascii").split() for file in files)

    def forget(self, gpu: GpuUuid) -> None:
        """Remove the cgroups of ``gpu``, unless something still runs there."""
        for hierarchy in self.hierarchies:
            with suppress(OSError):
                (hierarchy / PARENT_NAME / gpu).rmdir()
                (hierarchy / PARENT_NAME).rmdir()


def join_host_cgroup_namespace(process: int = 1) -> None:
    """See the hierarchies as the host does. Raises OSError where that is not allowed.

    With cgroup version 2 a runtime may give a container a namespace that begins at its own cgroup, and the kernel then
    moves nothing out of it. ``process`` is one of the host: 1 is, where the pod shares the host's process ids.
    """
    theirs = Path(f"/proc/{process}/ns/cgroup")
    if _OURS.stat().st_ino == theirs.stat().st_ino:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    namespace = os.open(theirs, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(namespace, _CLONE_NEWCGROUP):
            raise OSError(ctypes.get_errno(), "the host's cgroup namespace cannot be joined")
    finally:
        os.close(namespace)


def _cgroup_mounts(mountinfo: str) -> list[Path]:
    mounts = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] in _CGROUP_KINDS:
            mounts.append(Path(before.split()[_MOUNT_POINT_FIELD]))
    return mounts


def _inherit_cpuset(folder: Path) -> None:
    for name in _CPUSET_FILES:
        inherited = folder.parent / name
        if inherited.exists() and (folder / name).exists() and not (folder / name).read_text(encoding="ascii").strip():
            (folder / name).write_text(inherited.read_text(encoding="ascii"), encoding="ascii")
