"""The plugin's client of the MPS supervisor, over a real socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from cta_group_plugin.adapters.supervisor_client import SupervisorClient
from cta_group_plugin.mps_trouble import MpsTrouble
from cta_group_plugin.ports import MpsDemand, MpsState
from cta_group_plugin.supervisor_api import supervisor_pb2 as api
from cta_group_plugin.supervisor_api.supervisor_pb2_grpc import (
    MpsSupervisorServicer,
    add_MpsSupervisorServicer_to_server,
)
from plugin_running import short_folder
from plugin_values import uuid_of

DEMANDS = (MpsDemand(uuid_of(0), 25, 19996), MpsDemand(uuid_of(1), 50, 0))


class FakeSupervisor(MpsSupervisorServicer):
    """A supervisor whose second GPU is not ready."""

    def __init__(self, *states: api.State) -> None:
        self.asked: list[api.SyncRequest] = []
        self.states = states

    async def Sync(  # noqa: N802 - the name in the .proto file
        self, request: api.SyncRequest, _context: grpc.aio.ServicerContext[api.SyncRequest, api.SyncReply]
    ) -> api.SyncReply:
        """Answer two GPUs."""
        self.asked.append(request)
        if self.states:
            return api.SyncReply(states=self.states)
        ready = api.State(gpu_uuid=uuid_of(0), ready=True, sm_percent=25, memory_mib=19996)
        told = f"GPU {uuid_of(1)}: MPS server 7 is in state FAULT"
        waiting = api.State(gpu_uuid=uuid_of(1), reason=told, trouble=api.TROUBLE_FAULT)
        return api.SyncReply(states=[ready, waiting])

    async def Look(  # noqa: N802 - the name in the .proto file
        self, _request: api.LookRequest, _context: grpc.aio.ServicerContext[api.LookRequest, api.SyncReply]
    ) -> api.SyncReply:
        """Answer nothing: the plugin's client never looks."""
        return api.SyncReply()


@asynccontextmanager
async def client_of(socket: Path) -> AsyncIterator[SupervisorClient]:
    """Yield a client and close it."""
    client = SupervisorClient(socket)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def served(supervisor: FakeSupervisor, root: Path) -> AsyncIterator[SupervisorClient]:
    """Serve the supervisor in a folder, and yield a client of it."""
    server = grpc.aio.server()
    add_MpsSupervisorServicer_to_server(supervisor, server)
    server.add_insecure_port(f"unix://{root}/s.sock")
    await server.start()
    try:
        async with client_of(root / "s.sock") as client:
            yield client
    finally:
        await server.stop(None)


async def test_demands_go_out_and_states_come_back() -> None:
    """Every number arrives; a reason does not name its GPU twice."""
    supervisor = FakeSupervisor()
    with short_folder() as root:
        async with served(supervisor, root) as client:
            states = await client.sync(DEMANDS)
    assert states == {
        uuid_of(0): MpsState(ready=True, reason="", sm_percent=25, memory_mib=19996),
        uuid_of(1): MpsState(ready=False, reason="MPS server 7 is in state FAULT", trouble=MpsTrouble.FAULT),
    }
    assert [(each.gpu_uuid, each.sm_percent, each.memory_mib) for each in supervisor.asked[0].demands] == [
        (uuid_of(0), 25, 19996),
        (uuid_of(1), 50, 0),
    ]


async def test_nonsense_of_a_supervisor_makes_no_gpu_ready() -> None:
    """GPUs that it leaves out wait, and those that nobody asked about are nobody's."""
    nonsense = api.State(gpu_uuid="no GPU", ready=True, sm_percent=1 << 31, memory_mib=1)
    loss = api.Loss(at_seconds=float("nan"), reason="", client_pids=[])
    with short_folder() as root:
        async with served(FakeSupervisor(nonsense, api.State(ready=True, loss=loss)), root) as client:
            states = await client.sync(DEMANDS)
    assert set(states) == {uuid_of(0), uuid_of(1)}
    assert {state.ready for state in states.values()} == {False}
    assert {state.reason for state in states.values()} == {
        f"the MPS supervisor at {root}/s.sock does not tell of this GPU"
    }


async def test_supervisor_that_is_away_is_said_of_every_gpu() -> None:
    """No error escapes: each GPU waits, and the reason names the socket."""
    with short_folder() as root:
        async with client_of(root / "s.sock") as client:
            states = await client.sync(DEMANDS)
        assert set(states) == {uuid_of(0), uuid_of(1)}
        assert not any(state.ready for state in states.values())
        assert all(f"the MPS supervisor at {root}/s.sock does not answer" in state.reason for state in states.values())
