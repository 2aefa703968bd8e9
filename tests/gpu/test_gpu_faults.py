"""What ends on a real GPU, and what comes back: daemon, server, supervisor, tenant."""

import os
import signal
import time

from cta_group_plugin.adapters.nvml import NvmlSource
from cta_group_plugin.inventory import ServedGpu
from gpu_client import GpuClient
from gpu_figures import Figures
from gpu_node import GpuNode, Tenant, until
from gpu_processes import CONTROL_DAEMON, SERVER


async def has_its_slice(node: GpuNode, tenant: Tenant) -> bool:
    """Tell whether a new program of the tenant runs on its SMs."""
    async with node.client(tenant) as client:
        return bool((await client.ask("spread"))["sms_used"] == tenant.sm_count)


async def seconds_to_death(client: GpuClient) -> float:
    """Return how long the GPU still answers a program."""
    began = time.monotonic()
    while not await client.is_dead():
        assert time.monotonic() - began < 20, "the program still has the GPU"
    return time.monotonic() - began


async def test_a_daemon_that_was_killed_is_back(node: GpuNode, quarter: int, figures: Figures) -> None:
    """After kill -9 of the control daemon its clients are dead, and the next container start gets its slice again."""
    tenant = await node.tenant(quarter)
    async with node.client(tenant) as client:
        (daemon,) = node.processes(CONTROL_DAEMON)
        os.kill(daemon, signal.SIGKILL)
        died_seconds = await seconds_to_death(client)
    again = await node.started(tenant.admitted)
    assert await has_its_slice(node, again)
    assert daemon not in node.processes(CONTROL_DAEMON)
    assert len(node.processes(CONTROL_DAEMON)) == 1
    figures.note("daemon killed", client_died_seconds=died_seconds, ready_again_seconds=again.ready_seconds)


async def test_a_server_that_was_killed_is_back(node: GpuNode, quarter: int, figures: Figures) -> None:
    """After kill -9 of the server its clients are dead; the daemon starts another one with the same ceiling."""
    tenant = await node.tenant(quarter)
    async with node.client(tenant) as client:
        await node.kill_servers()
        died_seconds = await seconds_to_death(client)
    again = await node.started(tenant.admitted)
    assert await has_its_slice(node, again)
    figures.note("server killed", client_died_seconds=died_seconds, ready_again_seconds=again.ready_seconds)


async def test_a_program_with_a_fault_takes_its_neighbours_and_leaves_the_gpu(
    node: GpuNode, quarter: int, figures: Figures
) -> None:
    """After a write to nowhere every program on the GPU is dead; the next start waits for MPS, and no group is lost.

    So MPS keeps the memory of tenants apart, and not their faults.
    """
    first, second = await node.tenant(quarter), await node.tenant(quarter)
    async with node.client(first) as offender, node.client(second) as neighbour:
        told = await offender.ask("trespass")
        died_seconds = await seconds_to_death(neighbour)
    assert told["error"]["name"] == "CUDA_ERROR_ILLEGAL_ADDRESS"
    again = await node.started(second.admitted)
    assert await has_its_slice(node, again)
    assert set(node.kubelet.devices.values()) == {"Healthy"}
    figures.note("program with a fault", neighbour_died_seconds=died_seconds, ready_again_seconds=again.ready_seconds)


async def test_a_supervisor_that_was_killed_leaves_its_tenants_alone(node: GpuNode, quarter: int) -> None:
    """After kill -9 of the supervisor a program runs on, and the next supervisor takes its daemon over."""
    tenant = await node.tenant(quarter)
    async with node.client(tenant) as client:
        daemon = node.processes(CONTROL_DAEMON)
        node.kill_supervisor()
        assert not await client.is_dead()
        node.start_supervisor()
        other = await node.tenant(quarter)
        assert await has_its_slice(node, other)
        assert not await client.is_dead()
        assert node.processes(CONTROL_DAEMON) == daemon


async def test_a_supervisor_that_ends_leaves_a_daemon_with_clients(node: GpuNode, quarter: int) -> None:
    """SIGTERM while a program runs ends only the supervisor."""
    tenant = await node.tenant(quarter)
    async with node.client(tenant) as client:
        node.end_supervisor()
        assert len(node.processes(CONTROL_DAEMON)) == 1
        assert not await client.is_dead()


async def test_a_supervisor_that_ends_clears_an_idle_gpu(
    node: GpuNode, gpu: ServedGpu, driver: NvmlSource, quarter: int, figures: Figures
) -> None:
    """SIGTERM without programs ends daemon and server, and the GPU is as it was found."""
    tenant = await node.tenant(quarter)
    assert await has_its_slice(node, tenant)
    began = time.monotonic()
    node.end_supervisor()
    figures.note("idle node left", supervisor_end_seconds=time.monotonic() - began)
    await until(lambda: not node.processes(), "daemon and server have ended", seconds=10)
    await until(lambda: not driver.processes(gpu.facts.uuid), "nothing is on the GPU", seconds=10)
    (now,) = [one for one in driver.inventory().gpus if one.uuid == gpu.facts.uuid]
    assert now.compute_mode == gpu.facts.compute_mode


async def test_a_tenant_that_was_killed_leaves_its_neighbour_and_its_memory(
    node: GpuNode, driver: NvmlSource, quarter: int, figures: Figures
) -> None:
    """After kill -9 of a program that took all its memory its neighbour lives, and its replacement gets all of it."""
    first, second = await node.tenant(quarter), await node.tenant(quarter)
    async with node.client(second) as neighbour:
        async with node.client(first) as victim:
            taken = await victim.ask("fill")
            await victim.kill()
        gone = await until(lambda: victim.pid not in _pids(driver, first), "the driver forgets it")
        async with node.client(first) as replacement:
            again = await replacement.ask("fill")
        assert again["allocated_mib"] == taken["allocated_mib"]
        assert not await neighbour.is_dead()
    assert node.processes(SERVER)
    figures.note("tenant killed", forgotten_after_seconds=gone, memory_again_mib=again["allocated_mib"])


def _pids(driver: NvmlSource, tenant: Tenant) -> set[int]:
    return {process.pid for process in driver.processes(tenant.gpu)}
