"""A real MPS daemon that hangs: left alone under its clients, replaced when they have gone."""

import os
import signal

import grpc
import pytest

from cta_group_plugin.adapters.supervisor_client import SupervisorClient
from cta_group_plugin.ports import MpsDemand, MpsState
from cta_group_plugin.settings import SUPERVISOR_SOCKET_NAME
from gpu_figures import Figures
from gpu_node import GpuNode, Tenant, until
from gpu_processes import CONTROL_DAEMON


async def state_of(node: GpuNode, tenant: Tenant) -> MpsState:
    """Ask the supervisor about a tenant's GPU, demanding nothing but what it has."""
    client = SupervisorClient(node.mps_root / SUPERVISOR_SOCKET_NAME)
    percent = int(tenant.environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"])
    try:
        return (await client.sync([MpsDemand(tenant.gpu, percent, tenant.memory_mib)]))[tenant.gpu]
    finally:
        await client.close()


async def test_a_daemon_that_hangs_is_replaced_after_its_last_client(
    node: GpuNode, quarter: int, figures: Figures
) -> None:
    """A stopped daemon keeps its client working and newcomers waiting; without a client another one takes its place."""
    tenant = await node.tenant(quarter)
    (daemon,) = node.processes(CONTROL_DAEMON)
    async with node.client(tenant) as client:
        assert (await state_of(node, tenant)).client_pids == (client.pid,)
        os.kill(daemon, signal.SIGSTOP)
        with pytest.raises(grpc.aio.AioRpcError, match="left alone as long as 1 client may live"):
            await node.started(tenant.admitted)
        assert not await client.is_dead()
        assert node.processes(CONTROL_DAEMON) == [daemon]
    waited = await until(lambda: daemon not in node.processes(CONTROL_DAEMON), "it is killed", seconds=60)
    again = await node.started(tenant.admitted)
    async with node.client(again) as client:
        assert (await client.ask("spread"))["sms_used"] == again.sm_count
    figures.note("daemon hangs", replaced_after_last_client_seconds=waited, ready_again_seconds=again.ready_seconds)


async def test_the_state_names_clients_and_those_who_died(node: GpuNode, quarter: int) -> None:
    """A killed server's clients are told with their process ids, and a program without MPS is not among the clients."""
    tenant = await node.tenant(quarter)
    async with node.client(tenant) as client, node.client(tenant, without=("CUDA_MPS_PIPE_DIRECTORY",)) as stray:
        assert (await state_of(node, tenant)).client_pids == (client.pid,)
        assert not await stray.is_dead()
        await node.kill_servers()
    state = await state_of(node, tenant)
    assert state.loss is not None
    assert state.loss.client_pids == (client.pid,)
    assert state.client_pids == ()
