"""A second device plugin on the node that serves a GPU of ours too."""

import asyncio
from collections.abc import AsyncIterator

import grpc.aio
import pytest

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_plugin.gpu_choice import GpuChoice, parse_names
from cta_group_plugin.settings import HealthSettings
from cta_group_plugin.testing import Ask
from plugin_running import FakeNode, registered_plugin, short_folder
from plugin_values import account, groups, pod, uuid_of

FAST = HealthSettings(poll_seconds=0.05, state_dir=None)


@pytest.fixture
async def node() -> AsyncIterator[FakeNode]:
    """Return a node with eight H100s."""
    with short_folder() as root:
        yield FakeNode.under(root)


def device_of(index: int) -> dict[str, frozenset[str]]:
    """Return what kubelet tells of NVIDIA's plugin when it serves one GPU."""
    return {"nvidia.com/gpu": frozenset({uuid_of(index)})}


async def test_gpu_of_another_plugin_is_never_offered(node: FakeNode) -> None:
    """Not even at first; the node says who has it and which setting decides."""
    node.pod_resources.others = device_of(3)
    async with registered_plugin(node, health=FAST, publish=True) as kubelet:
        assert len(kubelet.devices) == 896
        assert not [text for text in kubelet.devices if text.startswith(uuid_of(3))]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not node.api.applied or not node.api.applied[-1].gpus:  # noqa: ASYNC110 - a fake tells nobody
                await asyncio.sleep(0.01)
        assert "serves this GPU as nvidia.com/gpu" in (node.api.applied[-1].gpus[3].withheld or "")
        (told,) = [told for told in node.api.applied[-1].conditions if told.type == "Compatible"]
        assert (told.status, told.reason) == ("False", "ClaimedTwice")


async def test_gpu_that_is_named_as_ours_is_served_whoever_claims_it(node: FakeNode) -> None:
    """The setting says who owns what."""
    node.pod_resources.others = device_of(3)
    async with registered_plugin(node, health=FAST, choice=GpuChoice(include=parse_names("3,4"))) as kubelet:
        assert len(kubelet.devices) == 256


async def test_plugin_that_comes_later_takes_nothing_from_pods_that_run(node: FakeNode) -> None:
    """Nothing new of that GPU is given out; what is held stays healthy, and a container that starts again waits."""
    async with registered_plugin(node, health=FAST) as kubelet:
        (container,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
        node.pod_resources.told = account({"a": groups(0, range(32))})
        await kubelet.until(lambda kubelet: len(kubelet.devices) == 1024)
        node.pod_resources.others = device_of(0)
        await kubelet.until(lambda kubelet: len(kubelet.devices) == 896 + 32, deadline_seconds=60.0)
        assert {text for text in kubelet.devices if text.startswith(uuid_of(0))} == set(container.ids)
        assert set(kubelet.devices.values()) == {"Healthy"}
        with pytest.raises(grpc.aio.AioRpcError, match="offers no groups any more: another device plugin serves"):
            await kubelet.start_container(container)
        (other,) = await kubelet.admit(pod("b"), [Ask("main", 96)])
        assert other.answer.envs["NVIDIA_VISIBLE_DEVICES"] == uuid_of(1)
