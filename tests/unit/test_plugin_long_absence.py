"""The API server is away for ten minutes and longer, on a clock that does not wait.

These are the plugin's two writers; that kubelet is served meanwhile shows ``tests/node/test_plugin_faults.py``, with a
shorter absence of a real API server.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial

import pytest

from background import in_background
from cta_group_core.health.inputs import XidSeen
from cta_group_plugin.errors import ApiUnavailable
from cta_group_plugin.metrics import Metrics
from cta_group_plugin.pod_events import EventTeller, PodEvent
from cta_group_plugin.publish import Publisher
from cta_group_plugin.report import NodeReport
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from cta_group_plugin.status import status_of
from plugin_values import account, groups, node_of, offer, uuid_of
from virtual_time import run_in_virtual_time

EPOCH = 1e9
STATUS = partial(status_of, resource_name="nvidia.com/cta-group", enforcement=EnforcementSettings())


def wall_clock() -> float:
    """Return seconds since the epoch on a wall that goes with the loop."""
    return EPOCH + asyncio.get_running_loop().time()


@dataclass
class Api:
    """An API server that may be away, and what came through to it."""

    is_away: bool = False
    applied: list[NodeReport] = field(default_factory=list)
    told: list[PodEvent] = field(default_factory=list)
    refused_at: list[float] = field(default_factory=list)
    """When something was tried in vain."""

    async def apply(self, status: NodeReport) -> str:
        """Take a status."""
        self._answer()
        self.applied.append(status)
        return ""

    async def write(self, event: PodEvent) -> None:
        """Take an event."""
        self._answer()
        self.told.append(event)

    async def close(self) -> None:
        """Nothing to release."""

    def _answer(self) -> None:
        if self.is_away:
            self.refused_at.append(asyncio.get_running_loop().time())
            raise ApiUnavailable("the API server is away")


@dataclass
class Node:
    """A node with two GPUs and the two writers of its plugin."""

    api: Api
    state: NodeState = field(default_factory=lambda: NodeState(wall_clock=wall_clock))
    held: int = 0

    def hold(self, pods: int) -> None:
        """Let so many pods hold eight groups each of GPU 0."""
        self.held = pods
        self.state.learn_account(
            account({f"pod-{number}": groups(0, range(8 * number, 8 * number + 8)) for number in range(pods)}),
            asked_at=self.state.now(),
        )

    def shown(self) -> int:
        """Return how many pods CTANode shows on GPU 0."""
        return len(self.api.applied[-1].gpus[0].allocations)

    async def publish(self) -> None:
        """Run the writer of CTANode."""
        await Publisher(self.state, self.api, STATUS, Metrics("test"), wall_clock=wall_clock).run()

    async def tell(self) -> None:
        """Run the writer of events."""
        await EventTeller(self.state, self.api, None, wall_clock=wall_clock).run()


async def absence(seconds: float) -> tuple[Node, float]:
    """Let the API be away for so long, with a busy node; return the node and how long CTANode was behind after it."""
    node = Node(Api())
    node.state.learn_devices(node_of(2), offer(2), {})
    node.hold(1)
    clock = asyncio.get_running_loop().time
    async with in_background(node.publish), in_background(node.tell):
        await asyncio.sleep(5)
        assert node.shown() == 1
        node.api.is_away = True
        gone_at = clock()
        while clock() - gone_at < seconds:
            node.hold(1 + (node.held % 16))
            if node.held == 2:
                node.state.observe({uuid_of(0): (XidSeen(79),)})
            await asyncio.sleep(10)
        node.hold(4)
        node.api.is_away = False
        back_at = clock()
        async with asyncio.timeout(120):
            while node.shown() != 4:  # noqa: ASYNC110 - on a clock that does not wait
                await asyncio.sleep(1)
        behind = clock() - back_at
        await asyncio.sleep(120)
    return node, behind


@pytest.mark.parametrize("minutes", [10, 55])
def test_api_server_away_for_minutes_loses_nothing(minutes: int) -> None:
    """Before: all is written. During: it is asked rarely. After: the newest account soon, and all news once.

    A GPU broke during the absence, which every pod that holds a part of it is told.
    """
    node, behind_seconds = run_in_virtual_time(absence(60.0 * minutes))
    assert behind_seconds <= 31
    assert len(node.api.refused_at) <= 10 * minutes, "an API server that comes back is not stormed"
    assert sorted((event.pod.name, event.reason) for event in node.api.told) == [
        (f"pod-{number}", "GPUUnhealthy") for number in range(4)
    ]
    assert not node.api.applied[-1].gpus[0].is_placeable
    assert len(node.api.applied) <= 10, "what was only true meanwhile is not written any more"
