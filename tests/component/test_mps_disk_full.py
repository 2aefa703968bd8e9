"""The MPS folder of the host is full: nothing new starts, with the reason, and what runs goes on. Needs root."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path

import pytest

from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.supervisor_client import SupervisorClient
from cta_group_plugin.ports import MpsState
from mps_supervising import ONE, TWO, share
from simulated_mps import SimulatedNode, eventually, is_alive, simulated_node

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system takes root")

FILE_SYSTEM_KIB = 256
PROGRAM = Path(sys.executable).with_name("cta-group-plugin")


def _is_written(file: RawIOBase, block: bytes) -> bool:
    """Append a block; tell whether there was room for it."""
    try:
        return file.write(block) == len(block)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False


class SmallDisk:
    """A supervisor whose MPS folder is a small file system that only it and its daemons see, and this test by /proc."""

    def __init__(self, pid: int, node: SimulatedNode) -> None:
        self.seen = SimulatedNode(Path(f"/proc/{pid}/root") / node.root.relative_to("/"))

    def fill(self) -> None:
        """Take all the room that is left."""
        block = bytes(os.statvfs(self.seen.root).f_frsize)
        with (self.seen.root / "filler").open("ab", buffering=0) as filler:
            while _is_written(filler, block):
                pass

    def clear(self) -> None:
        """Give the room back."""
        (self.seen.root / "filler").unlink()

    async def until(self, is_so: Callable[[Mapping[GpuUuid, MpsState]], bool], *gpus: GpuUuid) -> None:
        """Demand a share of each GPU, again and again, until the states are as they should be."""
        client = SupervisorClient(self.seen.root / "supervisor.sock")

        async def so() -> bool:
            return is_so(await client.sync([share(gpu) for gpu in gpus]))

        try:
            await eventually(so, "the states are as they should be")
        finally:
            await client.close()


@contextmanager
def supervisor_on_a_small_disk(node: SimulatedNode) -> Iterator[SmallDisk]:
    """Run a supervisor in a mount namespace of its own; it and its daemons end with the block."""
    mount = f"mount -t tmpfs -o size={FILE_SYSTEM_KIB}k,mode=755 small {node.root}"
    command = f'{mount} && exec {PROGRAM} mps --mps-root {node.root} --simulated --metrics-address ""'
    with subprocess.Popen(["unshare", "--mount", "sh", "-c", command], stderr=subprocess.DEVNULL) as process:
        disk = SmallDisk(process.pid, node)
        try:
            yield disk
        finally:
            disk.seen.kill_daemons()
            process.kill()


async def test_a_full_disk_stops_nothing_that_runs_and_starts_nothing() -> None:
    """A daemon that runs takes clients and larger shares; another GPU waits with the reason, and starts with room."""
    with simulated_node() as node, supervisor_on_a_small_disk(node) as disk:
        await eventually((disk.seen.root / "supervisor.sock").exists, "the supervisor serves")
        await disk.until(lambda states: states[ONE].ready, ONE)
        pid = disk.seen.pid(ONE)
        assert pid is not None
        disk.fill()
        await disk.until(lambda states: states[ONE].ready and "No space left on device" in states[TWO].reason, ONE, TWO)
        with disk.seen.client(ONE) as client:
            assert client.answer == {"sm_percent": 25, "memory_mib": 17766}
        assert is_alive(pid)
        disk.clear()
        await disk.until(lambda states: states[ONE].ready and states[TWO].ready, ONE, TWO)
