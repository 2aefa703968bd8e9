"""The plugin in enforcement mode strict-uniform: one share size on a GPU at a time, so the ceiling is the limit."""

from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from cta_group_core.rooms import SharePolicy
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.ports import MpsDemand
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.testing import AdmissionRefused, Ask, FakeKubelet
from plugin_running import FakeNode, registered_plugin, short_folder
from plugin_values import node_of, pod, uuid_of

STRICT = EnforcementSettings(mode=SharePolicy.STRICT_UNIFORM)


@pytest.fixture
async def node() -> AsyncIterator[FakeNode]:
    """Return a node with two H100s."""
    with short_folder() as root:
        yield FakeNode.under(root, node_of(2))


@pytest.fixture
async def kubelet(node: FakeNode) -> AsyncIterator[FakeKubelet]:
    """Return a kubelet that knows the strict plugin."""
    async with registered_plugin(node, enforcement=STRICT) as kubelet:
        yield kubelet


async def gpu_of(kubelet: FakeKubelet, name: str, groups: int) -> str:
    """Admit a pod, start it, and return the GPU that it got."""
    (container,) = await kubelet.admit(pod(name), [Ask("main", groups)])
    await kubelet.start_container(container)
    (gpu,) = {device.partition("::")[0] for device in container.ids}
    return gpu


async def test_sizes_do_not_mix_and_the_ceiling_is_the_share(kubelet: FakeKubelet, node: FakeNode) -> None:
    """Two sizes take two GPUs although one had room for both, and no client could be allowed more than its own."""
    gpus = [await gpu_of(kubelet, name, groups) for name, groups in (("a", 32), ("b", 32), ("c", 16), ("d", 16))]
    assert gpus == [uuid_of(0), uuid_of(0), uuid_of(1), uuid_of(1)]
    assert node.mps.demanded[-1] == (MpsDemand(uuid_of(0), 25, 19996), MpsDemand(uuid_of(1), 13, 9998))


async def test_a_third_size_is_refused_with_what_each_gpu_serves(kubelet: FakeKubelet) -> None:
    """The refusal tells for which size the free groups are kept."""
    await gpu_of(kubelet, "a", 32)
    await gpu_of(kubelet, "b", 16)
    with pytest.raises(
        AdmissionRefused, match=r"GPU 0: 96 of 128 \(shared in 32\), GPU 1: 112 of 128 \(shared in 16\)"
    ):
        await kubelet.admit(pod("c"), [Ask("main", 64)])


async def test_a_gpu_takes_another_size_when_it_is_empty_again(kubelet: FakeKubelet) -> None:
    """The size belongs to those who are there, not to the GPU."""
    await gpu_of(kubelet, "a", 32)
    await gpu_of(kubelet, "b", 16)
    kubelet.delete(pod("a"))
    assert await gpu_of(kubelet, "c", 64) == uuid_of(0)


async def test_allocate_refuses_what_was_not_preferred(kubelet: FakeKubelet) -> None:
    """Groups of another size on a shared GPU, as kubelet takes them by itself, are refused."""
    await gpu_of(kubelet, "a", 32)
    ids = [f"{uuid_of(0)}::{number}" for number in range(64, 128)]
    request = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=ids)])
    with pytest.raises(grpc.aio.AioRpcError, match="serves shares of one size at a time"):
        await kubelet.plugin.Allocate(request)


async def test_an_init_container_does_not_stand_in_its_own_way(kubelet: FakeKubelet) -> None:
    """A pod whose init container had another size gets its GPU all the same: the two never run together."""
    init, main = await kubelet.admit(pod("a"), [Ask("load", 64, is_init=True), Ask("main", 96)])
    assert set(init.ids) < set(main.ids)
