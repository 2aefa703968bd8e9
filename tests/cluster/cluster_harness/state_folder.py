"""The folder that holds everything of one cluster: where it lies, who holds it, and how it goes away.

It lies below /tmp whatever TMPDIR says, because a Unix socket's path has at most 107 bytes. The warden holds a lock
on it as long as it lives, so a folder whose lock is free belongs to nobody and is swept.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from cluster_harness import cgroups
from cluster_harness.components import LOG_FOLDER
from cluster_harness.errors import HarnessError

BASE = Path("/tmp")  # noqa: S108 - made by mkdtemp, so nobody else can have it
PREFIX = "cta-cluster-"
LOCK = "lock"
NODE_PLAN = "node.json"
WARDEN_PID = "warden.pid"
DETACH = b"detach"  # what an owner tells the warden before it leaves the cluster to itself


def make_state_folder() -> tuple[Path, int]:
    """Return a new state folder and a descriptor that holds its lock, to be handed to the warden."""
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=BASE))
    (folder / LOG_FOLDER).mkdir()
    unheld = folder / f"{LOCK}.new"
    descriptor = os.open(unheld, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    unheld.rename(folder / LOCK)  # whoever sweeps sees a lock only once it is held
    return folder, descriptor


def require_root() -> None:
    """Raise HarnessError where this process may not make namespaces, cgroups and mounts."""
    if os.geteuid() != 0:
        raise HarnessError("a cluster with a node needs root: namespaces, cgroups and mounts are made for it")


def sweep() -> list[Path]:
    """Remove the state folders and cgroups that killed wardens left, and return those folders."""
    abandoned = [folder for folder in BASE.glob(f"{PREFIX}*") if _is_abandoned(folder)]
    for folder in abandoned:
        remove_state(folder)
    return abandoned


def _is_abandoned(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR)
    except OSError:
        return False  # just being made, or not ours
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def remove_state(folder: Path) -> None:
    """Remove the cluster's cgroups and its folder; no process of it may be left."""
    cgroups.remove(folder.name)
    shutil.rmtree(folder, ignore_errors=True)
