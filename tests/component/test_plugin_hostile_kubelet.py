"""Requests that no kubelet should make: each is refused in words, and the next one is served as ever."""

import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import grpc
import grpc.aio
import pytest

from cta_group_core.ids import GroupId, IdForm
from cta_group_core.rooms import SharePolicy
from cta_group_plugin.edges import Edges
from cta_group_plugin.id_book import IdBook
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.testing import Ask, FakeGpuSource, FakeKubelet
from plugin_running import FakeNode, registered_plugin, short_folder
from plugin_values import gpu, node_of, pod, uuid_of

INVALID = {grpc.StatusCode.INVALID_ARGUMENT}
REFUSED = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.RESOURCE_EXHAUSTED}


class NodeWithBothForms(FakeNode):
    """A node whose ids mean something in both forms."""

    form = IdForm.UUID

    def edges(self) -> Edges:
        """Return this node's fakes, and ids that know both forms."""
        ids = IdBook(self.form)
        ids.recall([])
        return replace(super().edges(), ids=ids)


@pytest.fixture(params=[IdForm.UUID, IdForm.SHORT])
async def node(request: pytest.FixtureRequest) -> AsyncIterator[FakeNode]:
    """Return a node with two H100s that tells its groups in one form or the other."""
    with short_folder() as root:
        (root / "plugins").mkdir()
        made = NodeWithBothForms(root, FakeGpuSource(node_of(2)))
        made.form = request.param
        yield made


@pytest.fixture(params=SharePolicy)
async def kubelet(node: FakeNode, request: pytest.FixtureRequest) -> AsyncIterator[FakeKubelet]:
    """Return a kubelet that knows the plugin."""
    async with registered_plugin(node, enforcement=EnforcementSettings(mode=request.param)) as kubelet:
        yield kubelet


def long_ids(which: int, numbers: Sequence[int]) -> list[str]:
    """Return ids by UUID."""
    return [str(GroupId(uuid_of(which), number)) for number in numbers]


def short_ids(which: int, numbers: Sequence[int]) -> list[str]:
    """Return ids in short form."""
    return [f"g{which}-{number:03d}" for number in numbers]


EIGHT = range(8)
NO_IDS = [
    [],
    ["nonsense"],
    [""],
    ["GPU-0::"],
    ["g99-000"],
    [f"{uuid_of(0)}::{'9' * 4000}"],
    ["\x00\n\u202e"],
    [*long_ids(0, EIGHT), "nonsense"],
    long_ids(7, EIGHT),
    long_ids(0, range(128, 136)),
    [*long_ids(0, range(4)), *long_ids(1, range(4))],
    [*long_ids(0, range(128)), *long_ids(1, range(64))],
    long_ids(0, [0] * 8),
    [*long_ids(0, EIGHT), *long_ids(0, EIGHT)],
    [f"{uuid_of(0)}::{number}" for number in range(10_000)],
]


async def test_allocate_gives_nothing_for_what_is_no_slice(kubelet: FakeKubelet) -> None:
    """Unknown, of several GPUs, named twice, too few or too many: a sentence, and the groups stay free."""
    for ids in NO_IDS:
        request = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=ids)])
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await kubelet.plugin.Allocate(request)
        assert refused.value.code() in REFUSED, ids[:9]
        assert refused.value.details()
    await still_serves(kubelet)


async def test_one_group_by_both_of_its_texts_is_one_group(kubelet: FakeKubelet) -> None:
    """Eight ids that name seven groups are no slice of eight."""
    ids = [*long_ids(0, EIGHT), *short_ids(0, [0])] if "g0-000" in kubelet.devices else long_ids(0, [*EIGHT, 0])
    request = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=ids)])
    with pytest.raises(grpc.aio.AioRpcError, match="9 device ids name 8 groups") as refused:
        await kubelet.plugin.Allocate(request)
    assert refused.value.code() in INVALID


async def test_nothing_starts_with_what_is_no_slice(kubelet: FakeKubelet) -> None:
    """The kubelet asks again, so no pod is lost by it."""
    for ids in NO_IDS[:10]:
        with pytest.raises(grpc.aio.AioRpcError) as waits:
            await kubelet.plugin.PreStartContainer(api.PreStartContainerRequest(devices_ids=ids))
        assert waits.value.code() is grpc.StatusCode.UNAVAILABLE, ids[:9]
    await still_serves(kubelet)


async def test_nothing_is_preferred_that_was_not_asked_for(kubelet: FakeKubelet) -> None:
    """No size, too many, more to include than the size, and what is not here: refused, and never a short list."""
    musts = [[], ["nonsense"], long_ids(0, range(16)), long_ids(7, [0]), [*long_ids(0, [0]), *long_ids(1, [0])]]
    for size, must in itertools.product([0, -1, -(1 << 31), (1 << 31) - 1, 7, 12, 300], musts):
        one = api.ContainerPreferredAllocationRequest(
            available_deviceIDs=list(kubelet.devices), must_include_deviceIDs=must, allocation_size=size
        )
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await kubelet.plugin.GetPreferredAllocation(api.PreferredAllocationRequest(container_requests=[one]))
        assert refused.value.code() in REFUSED, (size, must[:9])
    await still_serves(kubelet)


async def test_what_another_plugin_left_among_the_free_ids_disturbs_nobody(kubelet: FakeKubelet) -> None:
    """The kubelet may offer ids of a list that another plugin sent under our name a moment ago."""
    one = api.ContainerPreferredAllocationRequest(
        available_deviceIDs=[*kubelet.devices, "nonsense", "g99-000", *["x" * 500] * 10_000], allocation_size=8
    )
    answer = await kubelet.plugin.GetPreferredAllocation(api.PreferredAllocationRequest(container_requests=[one]))
    assert len(set(answer.container_responses[0].deviceIDs) & set(kubelet.devices)) == 8


async def still_serves(kubelet: FakeKubelet) -> None:
    """Admit two pods of half a GPU each beside one another: nothing is taken, and nothing was lost."""
    for name in ("a", "b"):
        (container,) = await kubelet.admit(pod(name), [Ask("main", 64)])
        assert {gpu(0).uuid} == set(container.answer.envs["NVIDIA_VISIBLE_DEVICES"].split(","))
