"""The MPS supervisor's states, read without asking for anything: for whoever only looks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import grpc.aio

from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.supervisor_states import decoded_state
from cta_group_plugin.calls import cancellable
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.ports import MpsState
from cta_group_plugin.sockets import with_hint
from cta_group_plugin.supervisor_api import supervisor_pb2 as api
from cta_group_plugin.supervisor_api.supervisor_pb2_grpc import MpsSupervisorStub

_TIMEOUT_SECONDS: Final = 5.0


async def look_at_supervisor(path: Path) -> Mapping[GpuUuid, MpsState]:
    """Return the state of each GPU that has a daemon or should have one. Raises MpsUnavailable naming the socket."""
    options = [("grpc.default_authority", "localhost")]
    async with grpc.aio.insecure_channel(f"unix://{path}", options=options) as channel:
        try:
            reply = await cancellable(MpsSupervisorStub(channel).Look(api.LookRequest(), timeout=_TIMEOUT_SECONDS))
        except grpc.aio.AioRpcError as error:
            told = f"{path}: Look failed: {error.code().name}: {error.details()}"
            raise MpsUnavailable(with_hint(told)) from error
    return {GpuUuid(state.gpu_uuid): decoded_state(state) for state in reply.states}
