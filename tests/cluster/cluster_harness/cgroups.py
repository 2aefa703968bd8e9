"""A cgroup of the cluster's own in every hierarchy of the machine, which becomes the root that its node sees."""

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path

from cluster_harness.errors import DeadlineError
from cluster_harness.waiting import wait_for

_PROCESSES = "cgroup.procs"
_MOUNT_POINT_FIELD = 4
_REMOVE_TIMEOUT_SECONDS = 10.0


def hierarchies() -> list[tuple[Path, str, str]]:
    """Return mount point, type (cgroup or cgroup2) and controllers of each mounted hierarchy."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = line.split(" - ", 1)
        kind, _, options = after.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            controllers = ",".join(option for option in options.split(",") if option not in {"rw", "ro"})
            found.append((Path(before.split()[_MOUNT_POINT_FIELD]), kind, controllers))
    return found


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """Be a member of the cgroup ``name``, made in every hierarchy, for as long as the block runs."""
    earlier = {root: _own_cgroup(root, kind, controllers) for root, kind, controllers in hierarchies()}
    for root in earlier:
        (root / name).mkdir(exist_ok=True)
        _inherit_cpuset(root, root / name)
        _join(root / name)
    try:
        yield
    finally:
        for folder in earlier.values():
            _join(folder)


def remove(name: str) -> None:
    """Remove the cgroup ``name`` with all below it from every hierarchy; processes in it must be gone or going."""
    for root, _, _ in hierarchies():
        top = root / name
        with contextlib.suppress(DeadlineError):  # a process that is not ours sits in it: the next sweep tries again
            wait_for(functools.partial(_removed, top), f"removal of cgroup {top}", _REMOVE_TIMEOUT_SECONDS)


def _removed(top: Path) -> bool:
    if not top.exists():
        return True
    for folder, _, _ in os.walk(top, topdown=False):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    return not top.exists()


def _join(folder: Path) -> None:
    (folder / _PROCESSES).write_text(str(os.getpid()))


def _inherit_cpuset(parent: Path, child: Path) -> None:
    """Give a version 1 cpuset the parent's processors and memory nodes: it starts with none and admits nobody."""
    for setting in ("cpuset.mems", "cpuset.cpus"):
        if (parent / setting).exists() and not (child / setting).read_text().strip():
            (child / setting).write_text((parent / setting).read_text())


def _own_cgroup(root: Path, kind: str, controllers: str) -> Path:
    """Return the folder of this process's cgroup in one hierarchy."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, names, path = line.split(":", 2)
        same = (
            number == "0" if kind == "cgroup2" else bool(names) and set(names.split(",")) <= set(controllers.split(","))
        )
        if same:
            return root / path.lstrip("/")
    return root
