"""Who is on a real GPU, found by the product: the plugin's process beside the supervisor's and NVIDIA's own MPS."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from cta_group_core import names
from cta_group_plugin.adapters.nvml import NvmlSource
from cta_group_plugin.inventory import ServedGpu
from gpu_client import GpuClient, gpu_client
from gpu_figures import Figures
from gpu_node import GpuNode, Tenant, environment_of, gpu_node
from gpu_processes import SERVER

PIPE = names.ENV_MPS_PIPE_DIRECTORY


@pytest.fixture
async def pods_node(gpu: ServedGpu) -> AsyncIterator[GpuNode]:
    """Give the test a node on which the plugin can tell in which pod a process is."""
    assert gpu.units.capacity
    async with gpu_node(has_pods=True) as made:
        yield made


async def program(stack: AsyncExitStack, node: GpuNode, tenant: Tenant, *, without: tuple[str, ...] = ()) -> GpuClient:
    """Run a program of a tenant's pod until the stack ends."""
    client = await stack.enter_async_context(node.client(tenant, without=without))
    assert node.pods
    node.pods.show(client.pid, tenant.pod_uid)
    for server in node.processes(SERVER):
        node.pods.show(server)
    return client


async def test_a_tenant_that_leaves_mps_is_told_by_the_plugin(
    pods_node: GpuNode, gpu: ServedGpu, quarter: int, figures: Figures
) -> None:
    """One process without its pipe folder is counted; its neighbour in MPS is not, nor is anybody once it is gone."""
    async with AsyncExitStack() as stack:
        tenant = await pods_node.tenant(quarter)
        within = await program(stack, pods_node, tenant)
        await within.ask("touch")
        await pods_node.until_figure("unlimited_processes", tenant.gpu, 0)
        async with AsyncExitStack() as astray:
            bypass = await program(astray, pods_node, tenant, without=(PIPE,))
            assert bypass.hello["sms"] == gpu.units.sm_count
            seconds = await pods_node.until_figure("unlimited_processes", tenant.gpu, 1)
            log = (pods_node.root / "plugin.log").read_text()
            assert f"pid={bypass.pid}" in next(line for line in log.splitlines() if "unlimited_process" in line)
        gone = await pods_node.until_figure("unlimited_processes", tenant.gpu, 0)
        assert not await within.is_dead()
    figures.note("bypass told by the plugin", told_seconds=seconds, forgotten_seconds=gone, poll_seconds=1)


async def test_clients_that_come_and_go_are_never_told(pods_node: GpuNode, quarter: int) -> None:
    """Twenty programs one after the other, each there for a moment: nobody is accused, and no memory stays away."""
    tenant = await pods_node.tenant(quarter)
    for _ in range(20):
        async with AsyncExitStack() as stack:
            client = await program(stack, pods_node, tenant)
            await client.ask("spread")
            assert await pods_node.figure("unlimited_processes", tenant.gpu) in {0, None}
    log = (pods_node.root / "plugin.log").read_text()
    assert "unlimited_process" not in log
    assert "memory_not_given_back" not in log


async def test_a_foreign_process_is_told_by_the_plugin(pods_node: GpuNode, quarter: int, figures: Figures) -> None:
    """It is counted with its memory, and a tenant's program beside it is not."""
    async with AsyncExitStack() as stack:
        tenant = await pods_node.tenant(quarter)
        await program(stack, pods_node, tenant)
        async with gpu_client(environment_of(tenant.gpu, {}), pods_node.root) as foreign:
            assert pods_node.pods
            pods_node.pods.show(foreign.pid)
            seconds = await pods_node.until_figure("foreign_processes", tenant.gpu, 1)
            told = await pods_node.figure("foreign_memory_bytes", tenant.gpu)
            assert told
            assert told > 0
            assert await pods_node.figure("unlimited_processes", tenant.gpu) == 0
        await pods_node.until_figure("foreign_processes", tenant.gpu, 0)
    figures.note("foreign process told by the plugin", told_seconds=seconds, memory_mib=told / (1 << 20))


async def filled(stack: AsyncExitStack, node: GpuNode, tenant: Tenant) -> tuple[GpuClient, int]:
    """Run a program of a tenant that takes all its memory, and return how much that is, MiB."""
    client = await program(stack, node, tenant)
    taken = await client.ask("fill")
    return client, int(taken["allocated_mib"])


async def test_engines_that_are_killed_start_again_with_all_their_memory(
    pods_node: GpuNode, gpu: ServedGpu, driver: NvmlSource, quarter: int, figures: Figures
) -> None:
    """Four slices fill a GPU. One is killed ten times and started again, one deleted ten times and replaced.

    20 of 20 replacements get the same memory within 1 %, and no start has to be tried again for want of it.
    """
    waits: list[float] = []
    async with AsyncExitStack() as stack:
        neighbours = [await pods_node.tenant(quarter) for _ in range(2)]
        for each in neighbours:
            await filled(stack, pods_node, each)
        killed, deleted = await pods_node.tenant(quarter), await pods_node.tenant(quarter)
        async with AsyncExitStack() as engines:
            engine, whole = await filled(engines, pods_node, killed)
            other, _ = await filled(engines, pods_node, deleted)
            for _ in range(10):
                await engine.kill()
                killed = await pods_node.started_again(killed)
                engine, got = await filled(engines, pods_node, killed)
                waits.append(killed.ready_seconds)
                assert got == pytest.approx(whole, rel=0.01)
            for _ in range(10):
                await other.kill()
                pods_node.delete(deleted)
                deleted = await pods_node.tenant(quarter)
                other, got = await filled(engines, pods_node, deleted)
                waits.append(deleted.ready_seconds)
                assert got == pytest.approx(whole, rel=0.01)
            await engine.end()
            await other.end()
    assert set(pods_node.kubelet.devices.values()) == {"Healthy"}
    assert driver.use(gpu.facts.uuid).used_mib is not None
    figures.note("engines killed", memory_mib=whole, most_wait_seconds=max(waits), waits_seconds=sorted(waits)[-5:])
