"""Processes that use the GPU beside the slices: the driver tells of them, so they can be told apart from tenants."""

from cta_group_core import names
from cta_group_plugin.adapters.nvml import NvmlSource
from cta_group_plugin.inventory import ServedGpu
from gpu_client import gpu_client
from gpu_figures import Figures
from gpu_node import GpuNode, environment_of


async def test_a_foreign_process_is_told_apart_from_tenants(
    node: GpuNode, driver: NvmlSource, quarter: int, figures: Figures
) -> None:
    """A program that was given nothing is among the GPU's processes and not among the clients of its MPS."""
    tenant = await node.tenant(quarter)
    async with node.client(tenant) as client, gpu_client(environment_of(tenant.gpu, {}), node.root) as foreign:
        await foreign.ask("fill")
        on_gpu = {process.pid: process.memory_mib for process in driver.processes(tenant.gpu)}
        servers, clients = await node.mps_pids(tenant.gpu)
        assert {client.pid, foreign.pid} <= on_gpu.keys()
        assert clients == {client.pid}
        assert on_gpu.keys() - clients - servers == {foreign.pid}
        figures.note(
            "foreign process",
            its_memory_mib=on_gpu[foreign.pid],
            client_memory_mib=on_gpu[client.pid],
            server_memory_mib=[on_gpu.get(server) for server in servers],
        )


async def test_a_tenant_that_leaves_mps_has_the_whole_gpu_and_is_seen(
    node: GpuNode, gpu: ServedGpu, driver: NvmlSource, quarter: int, figures: Figures
) -> None:
    """Without its pipe folder a program runs unlimited where the compute mode is Default, and is told as foreign."""
    tenant = await node.tenant(quarter)
    async with node.client(tenant), node.client(tenant, without=(names.ENV_MPS_PIPE_DIRECTORY,)) as bypass:
        used = (await bypass.ask("spread"))["sms_used"]
        servers, clients = await node.mps_pids(tenant.gpu)
        foreign = {process.pid for process in driver.processes(tenant.gpu)} - clients - servers
        assert foreign == {bypass.pid}
        assert used == bypass.hello["sms"] == gpu.units.sm_count
        figures.note("bypass", sms_used=used, free_mib=bypass.hello["free_mib"])
