"""What kubelet asks the running plugin, over real sockets, and what it is answered."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import grpc
import grpc.aio
import pytest

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_core.links import Closeness
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.ports import GpuEvent, GpuEventKind, whole_demand
from cta_group_plugin.testing import AdmissionRefused, Admitted, Ask, FakeKubelet
from plugin_running import FakeNode, plugin_on, registered_plugin, short_folder
from plugin_values import gpu, inventory, node_of, pod, uuid_of


@pytest.fixture
async def node() -> AsyncIterator[FakeNode]:
    """Return a node with eight H100s."""
    with short_folder() as root:
        yield FakeNode.under(root)


@pytest.fixture
async def kubelet(node: FakeNode) -> AsyncIterator[FakeKubelet]:
    """Return a kubelet that knows the plugin."""
    async with registered_plugin(node) as kubelet:
        yield kubelet


async def test_registration_says_what_it_offers(kubelet: FakeKubelet) -> None:
    """The resource, the version, both optional calls, and a name of a socket that is no path."""
    (request,) = kubelet.registered
    assert (request.version, request.resource_name) == ("v1beta1", "nvidia.com/cta-group")
    assert "/" not in request.endpoint
    options = await kubelet.plugin.GetDevicePluginOptions(api.Empty())
    assert (options.pre_start_required, options.get_preferred_allocation_available) == (True, True)


async def test_eight_h100_are_1024_healthy_devices(kubelet: FakeKubelet) -> None:
    """Every group of every GPU is listed once and healthy."""
    assert len(kubelet.devices) == 1024
    assert set(kubelet.devices.values()) == {"Healthy"}


async def test_four_slices_share_a_gpu_and_the_fifth_takes_the_next(kubelet: FakeKubelet) -> None:
    """Five requests of 32 are placed by best fit."""
    gpus = []
    for number in range(5):
        (container,) = await kubelet.admit(pod(f"vllm-{number}"), [Ask("main", 32)])
        gpus.append({device.partition("::")[0] for device in container.ids})
    assert gpus == [{uuid_of(0)}] * 4 + [{uuid_of(1)}]


async def test_whole_gpus_are_those_with_nvlink_between_them(node: FakeNode) -> None:
    """GPU 0 is in use, so the pair of 0 and 1 is broken: two whole GPUs are the next pair that the driver tells."""
    node.gpus.linked = {frozenset({uuid_of(one), uuid_of(one + 1)}): Closeness.NVLINK for one in (0, 4)}
    async with registered_plugin(node) as kubelet:
        await kubelet.admit(pod("a"), [Ask("main", 32)])
        (container,) = await kubelet.admit(pod("b"), [Ask("main", 256)])
        assert container.answer.envs["CTA_GROUP_GPU_UUID"] == f"{uuid_of(4)},{uuid_of(5)}"


async def test_slice_comes_with_its_environment_and_mount(kubelet: FakeKubelet, node: FakeNode) -> None:
    """32 groups of an H100 are 25 % of the SMs and 19996 MiB, and the GPU's pipe folder is mounted."""
    (container,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
    assert container.answer.envs["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "25"
    assert container.answer.envs["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == f"{uuid_of(0)}=19996M"
    assert container.answer.envs["NVIDIA_VISIBLE_DEVICES"] == uuid_of(0)
    (mount,) = container.answer.mounts
    pipe = f"{node.root}/mps/{uuid_of(0)}/pipe"
    assert (mount.host_path, mount.container_path, mount.read_only) == (pipe, pipe, True)
    assert container.answer.envs["CUDA_MPS_PIPE_DIRECTORY"] == pipe


async def test_two_whole_gpus_have_no_mps(kubelet: FakeKubelet) -> None:
    """256 groups are two entire GPUs that nobody shares."""
    await kubelet.admit(pod("small"), [Ask("main", 8)])
    (container,) = await kubelet.admit(pod("large"), [Ask("main", 256)])
    assert container.answer.envs["NVIDIA_VISIBLE_DEVICES"] == f"{uuid_of(1)},{uuid_of(2)}"
    assert not [name for name in container.answer.envs if name.startswith("CUDA_MPS")]
    assert not container.answer.mounts


async def test_twelve_groups_are_refused(kubelet: FakeKubelet) -> None:
    """A size that no H100 allows fails the pod with the sizes that are."""
    with pytest.raises(AdmissionRefused, match=r"FAILED_PRECONDITION: asked for 12 groups.*in steps of 8"):
        await kubelet.admit(pod("a"), [Ask("main", 12)])


async def test_request_without_room_is_refused_with_what_fits(kubelet: FakeKubelet) -> None:
    """96 groups while every GPU has 64 free: the sentence says asked, free per GPU and what would fit."""
    for number in range(16):
        await kubelet.admit(pod(f"half-{number}"), [Ask("main", 64)])
    for number in range(0, 16, 2):
        kubelet.delete(pod(f"half-{number}"))
    with pytest.raises(AdmissionRefused) as refused:
        await kubelet.admit(pod("a"), [Ask("main", 96)])
    assert str(refused.value) == (
        "RESOURCE_EXHAUSTED: asked for 96 groups, but no GPU has room: free per GPU: GPU 0-7: 64 of 128 each; "
        "the largest request that fits now is 64 on one GPU"
    )


async def test_allocate_checks_again(kubelet: FakeKubelet) -> None:
    """A set over two GPUs, as kubelet makes it by chance, is refused by Allocate itself."""
    ids = [f"{uuid_of(index)}::{number}" for index in (0, 1) for number in range(16)]
    request = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=ids)])
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await kubelet.plugin.Allocate(request)
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "several GPUs" in str(refused.value.details())


async def test_app_container_reuses_the_groups_of_its_init_container(kubelet: FakeKubelet) -> None:
    """An init container of 64 and an app container of 96 end on one GPU."""
    init, main = await kubelet.admit(pod("a"), [Ask("load", 64, is_init=True), Ask("main", 96)])
    assert set(init.ids) < set(main.ids)
    assert len({device.partition("::")[0] for device in main.ids}) == 1


async def test_container_waits_until_its_daemon_is_ready(kubelet: FakeKubelet, node: FakeNode) -> None:
    """A start is put off with the supervisor's reason, and passes once the daemon answers."""
    (container,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
    node.mps.not_ready[uuid_of(0)] = "the daemon is starting"
    with pytest.raises(grpc.aio.AioRpcError) as waiting:
        await kubelet.start_container(container)
    assert waiting.value.code() is grpc.StatusCode.UNAVAILABLE
    assert waiting.value.details() == f"GPU 0 ({uuid_of(0)}): the daemon is starting"
    node.mps.not_ready.clear()
    await kubelet.start_container(container)


async def test_whole_gpu_starts_when_no_daemon_is_in_the_way(kubelet: FakeKubelet, node: FakeNode) -> None:
    """A tenant of a whole GPU asks for no daemon, and waits for one of before to be gone."""
    (container,) = await kubelet.admit(pod("a"), [Ask("main", 128)])
    node.mps.not_ready[uuid_of(0)] = "its MPS daemon still has 1 client"
    with pytest.raises(grpc.aio.AioRpcError, match="still has 1 client"):
        await kubelet.start_container(container)
    node.mps.not_ready.clear()
    await kubelet.start_container(container)
    assert node.mps.demanded[-1] == (whole_demand(uuid_of(0)),)


async def test_whole_gpu_starts_without_a_supervisor(kubelet: FakeKubelet, node: FakeNode) -> None:
    """Where MPS is broken whole GPUs are still given out, since nothing of MPS is needed for them."""
    node.mps.is_away = True
    (whole,) = await kubelet.admit(pod("a"), [Ask("main", 128)])
    (part,) = await kubelet.admit(pod("b"), [Ask("main", 32)])
    await kubelet.start_container(whole)
    with pytest.raises(grpc.aio.AioRpcError, match="the supervisor does not answer"):
        await kubelet.start_container(part)


async def test_lost_gpu_is_unhealthy_at_once_and_alone(kubelet: FakeKubelet, node: FakeNode) -> None:
    """Every group of the lost GPU becomes unhealthy, none of another, and all come back with it."""
    node.gpus.shown = replace(inventory(*(gpu(index) for index in range(7))))
    node.gpus.push(GpuEvent(GpuEventKind.LOST, uuid_of(7), detail="fell off the bus"))
    await kubelet.until(lambda kubelet: "Unhealthy" in kubelet.devices.values())
    unhealthy = {device.partition("::")[0] for device, health in kubelet.devices.items() if health == "Unhealthy"}
    assert unhealthy == {uuid_of(7)}
    assert len(kubelet.devices) == 1024
    node.gpus.shown = node_of(8)
    node.gpus.push(GpuEvent(GpuEventKind.RECOVERED, uuid_of(7)))
    await kubelet.until(lambda kubelet: "Unhealthy" not in kubelet.devices.values())


async def test_container_on_a_lost_gpu_waits(kubelet: FakeKubelet, node: FakeNode) -> None:
    """A restart on an unhealthy GPU is put off with the GPU's reason."""
    (container,) = await kubelet.admit(pod("a"), [Ask("main", 128)])
    node.gpus.push(GpuEvent(GpuEventKind.XID, uuid_of(0), xid=48))
    await kubelet.until(lambda kubelet: "Unhealthy" in kubelet.devices.values())
    with pytest.raises(grpc.aio.AioRpcError, match="is unhealthy: XID 48"):
        await kubelet.start_container(container)


async def test_pod_that_comes_while_every_gpu_is_held_back_waits(kubelet: FakeKubelet, node: FakeNode) -> None:
    """While kubelet admits its pods again it sees all groups; a pod that it refused then would have failed for good."""
    (first,) = await kubelet.admit(pod("a"), [Ask("main", 8)])
    for index in (7, 6, 5, 4, 3, 2, 1, 0):
        node.gpus.push(GpuEvent(GpuEventKind.XID, uuid_of(index), xid=123456))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await starts(kubelet, first):
            pass
    (second,) = await kubelet.admit(pod("b"), [Ask("main", 1024 - 128)])
    with pytest.raises(grpc.aio.AioRpcError, match="is suspect"):
        await kubelet.start_container(second)


async def starts(kubelet: FakeKubelet, container: Admitted) -> bool:
    """Tell whether a container can start now."""
    try:
        await kubelet.start_container(container)
    except grpc.aio.AioRpcError:
        return False
    return True


async def test_gpu_with_all_its_clients_gets_no_more(node: FakeNode) -> None:
    """With two clients a GPU at most, the third slice goes to the next GPU."""
    async with registered_plugin(node, max_clients=2) as kubelet:
        gpus = []
        for number in range(3):
            (container,) = await kubelet.admit(pod(f"p-{number}"), [Ask("main", 8)])
            gpus.append(container.answer.envs["NVIDIA_VISIBLE_DEVICES"])
        assert gpus == [uuid_of(0), uuid_of(0), uuid_of(1)]


async def test_stopping_plugin_just_ends_its_stream(node: FakeNode) -> None:
    """No list of unhealthy devices is sent on the way out: it would hit a successor's devices too."""
    async with node.kubelet() as kubelet:
        async with plugin_on(node):
            await kubelet.until(lambda kubelet: bool(kubelet.devices))
            endpoint = kubelet.endpoint
        assert endpoint
        assert endpoint.lists_received == 1
        assert [path.name for path in (node.root / "plugins").iterdir()] == ["kubelet.sock"]
