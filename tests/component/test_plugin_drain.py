"""A plugin that is asked to stop says so first, and serves the pods that are on their way."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_core.names import CONDITION_REGISTERED
from cta_group_plugin.app import serve
from cta_group_plugin.report import ConditionReport
from cta_group_plugin.testing import Ask
from plugin_running import FakeNode, short_folder
from plugin_values import pod


@pytest.fixture
def node() -> Iterator[FakeNode]:
    """Return a node whose plugin publishes."""
    with short_folder() as root:
        yield FakeNode.under(root)


def registered(node: FakeNode) -> ConditionReport | None:
    """Return what was published last about the registration."""
    if not node.api.applied:
        return None
    return next(one for one in node.api.applied[-1].conditions if one.type == CONDITION_REGISTERED)


async def until_published(node: FakeNode, status: str) -> ConditionReport:
    """Wait until the condition has that status."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (told := registered(node)) is None or told.status != status:  # noqa: ASYNC110 - the fake has no event
            await asyncio.sleep(0.01)
    return told


async def test_pods_on_their_way_are_served_after_it_was_told_that_no_more_should_come(node: FakeNode) -> None:
    """Kubelet fails a pod for good whose plugin is gone, so the plugin goes only when nobody sends pods any more."""
    stopping = asyncio.Event()
    running = asyncio.create_task(serve(replace(node.settings, publish=True), node.edges(), stopping))
    async with node.kubelet() as kubelet:
        await kubelet.until(lambda kubelet: bool(kubelet.devices))
        await until_published(node, "True")
        stopping.set()
        told = await until_published(node, "False")
        assert told.message == "the plugin is stopping"
        (late,) = await kubelet.admit(pod("late"), [Ask("main", 32)])
        assert len(late.ids) == 32
        assert await running == 0
