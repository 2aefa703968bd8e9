"""Registered and dropped a thousand times by one kubelet after the other: nothing is left of any of them."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cta_group_plugin.testing import Ask, FakeKubelet
from plugin_running import FakeNode, registered_plugin, short_folder
from plugin_values import node_of, pod
from simulated_mps import eventually

CYCLES = 1000
GROUPS = 40
MOST_BY_CHANCE = 8
"""gRPC's own threads come and go; what a registration left behind would be a thousand of."""


@pytest.fixture
async def node() -> AsyncIterator[FakeNode]:
    """Return a node with one T4, whose list of devices is short."""
    with short_folder() as root:
        yield FakeNode.under(root, node_of(1, "t4"))


def left_over() -> dict[str, int]:
    """Count what a registration could leave in this process: threads, open files, tasks that serve a stream."""
    gc.collect()
    return {
        "threads": threading.active_count(),
        "threads of the system": len(list(Path("/proc/self/task").iterdir())),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "tasks": len(asyncio.all_tasks()),
    }


async def cycle(kubelet: FakeKubelet) -> None:
    """Let kubelet end, which drops the plugin, and another begin, which the plugin registers with."""
    await kubelet.restart()
    await kubelet.until(lambda kubelet: len(kubelet.devices) == GROUPS)


def sockets(folder: Path) -> list[Path]:
    """Return the sockets that are not kubelet's."""
    return [path for path in folder.iterdir() if path.name != "kubelet.sock"]


async def test_a_thousand_registrations_leave_nothing(node: FakeNode) -> None:
    """Before: what a few cycles need. After a thousand more: no thread, file, task or socket beyond, and it serves."""
    async with registered_plugin(node) as kubelet:
        for _ in range(20):
            await cycle(kubelet)
        before = left_over()
        for _ in range(CYCLES):
            await cycle(kubelet)

        def is_as_before() -> bool:
            return all(now <= before[what] + MOST_BY_CHANCE for what, now in left_over().items())

        await eventually(is_as_before, f"no more than {before}, last {left_over()}")
        assert len(sockets(node.settings.device_plugin_dir)) == 1
        assert len({request.endpoint for request in kubelet.registered}) == CYCLES + 21
        (container,) = await kubelet.admit(pod("a"), [Ask("main", 8)])
        await kubelet.start_container(container)
