"""A cgroup of the cluster's own in every hierarchy of the machine, which becomes the root that its node sees."""

import contextlib
import ctypes
import functools
import os
from dataclasses import dataclass
from pathlib import Path

from cluster_harness.errors import DeadlineError
from cluster_harness.waiting import wait_for

_MOUNT_POINT_FIELD = 4
_REMOVE_TIMEOUT_SECONDS = 10.0
_CLONE_NEWCGROUP = 0x02000000  # linux/sched.h; os.unshare comes with Python 3.12
_THIS_PROCESS = "0"
_LEAF = "components"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted cgroup hierarchy: where, of which version (``cgroup`` or ``cgroup2``), with which controllers."""

    root: Path
    kind: str
    options: str


def hierarchies() -> list[Hierarchy]:
    """Return the hierarchies that are mounted where this process is."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = line.split(" - ", 1)
        kind, _, options = after.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            names = [option for option in options.split(",") if option not in {"rw", "ro"}]
            found.append(Hierarchy(Path(before.split()[_MOUNT_POINT_FIELD]), kind, ",".join(names)))
    return found


def enter(name: str) -> None:
    """Put this process into the cgroup ``name`` of every hierarchy and make that the root it sees from now on."""
    for hierarchy in hierarchies():
        own = hierarchy.root / name
        own.mkdir(exist_ok=True)
        _inherit_cpuset(hierarchy.root, own)
        _join(own)
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWCGROUP):
        raise OSError(ctypes.get_errno(), "unshare of the cgroup namespace")


def delegate_controllers(root: Path) -> None:
    """Let cgroups below a version 2 root use its controllers, which wants the root itself without a process."""
    controllers = (root / "cgroup.controllers").read_text().split()
    if controllers:
        (root / _LEAF).mkdir(exist_ok=True)
        _join(root / _LEAF)
        (root / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def remove(name: str) -> None:
    """Remove the cgroup ``name`` with all below it from every hierarchy; processes in it must be gone or going."""
    for hierarchy in hierarchies():
        top = hierarchy.root / name
        with contextlib.suppress(DeadlineError):  # a process that is not ours sits in it: the next sweep tries again
            wait_for(functools.partial(_removed, top), f"removal of cgroup {top}", _REMOVE_TIMEOUT_SECONDS)


def _removed(top: Path) -> bool:
    for folder, _, _ in os.walk(top, topdown=False):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    return not top.exists()


def _join(folder: Path) -> None:
    (folder / "cgroup.procs").write_text(_THIS_PROCESS)


def _inherit_cpuset(parent: Path, child: Path) -> None:
    """Give a version 1 cpuset the parent's processors and memory nodes: it starts with none and admits nobody."""
    for setting in ("cpuset.mems", "cpuset.cpus"):
        if (parent / setting).exists() and not (child / setting).read_text().strip():
            (child / setting).write_text((parent / setting).read_text())
