"""The MPS supervisor of this node, over its socket."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import grpc.aio

from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.supervisor_states import decoded_state
from cta_group_plugin.calls import cancellable
from cta_group_plugin.ports import MpsDemand, MpsState
from cta_group_plugin.sockets import with_hint
from cta_group_plugin.supervisor_api import supervisor_pb2 as api
from cta_group_plugin.supervisor_api.supervisor_pb2_grpc import MpsSupervisorStub

_TIMEOUT_SECONDS: Final = 10.0
"""The supervisor answers within seconds, whatever is wrong with a GPU; it may be starting itself."""


class SupervisorClient:
    """Implements :class:`cta_group_plugin.ports.MpsControl` by asking the supervisor's process."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._channel = grpc.aio.insecure_channel(
            f"unix://{socket}",
            options=[("grpc.default_authority", "localhost"), ("grpc.max_reconnect_backoff_ms", 1000)],
        )
        self._stub = MpsSupervisorStub(self._channel)

    async def sync(self, demands: Sequence[MpsDemand], *, generation: int = 0) -> Mapping[GpuUuid, MpsState]:
        """Ask the supervisor; when it does not answer, every state says so."""
        request = api.SyncRequest(
            generation=generation,
            demands=[
                api.Demand(
                    gpu_uuid=demand.gpu,
                    sm_percent=demand.sm_percent,
                    memory_mib=demand.memory_mib,
                    whole=demand.whole,
                )
                for demand in demands
            ],
        )
        try:
            reply = await cancellable(self._stub.Sync(request, timeout=_TIMEOUT_SECONDS))
        except grpc.aio.AioRpcError as error:
            told = f"{self._socket} does not answer: {error.code().name}: {error.details()}"
            reason = with_hint(f"the MPS supervisor at {told}")
            return {demand.gpu: MpsState(ready=False, reason=reason, is_told=False) for demand in demands}
        states = {GpuUuid(state.gpu_uuid): decoded_state(state) for state in reply.states}
        # A GPU of which it says nothing is not well because of that.
        untold = MpsState(ready=False, reason=f"the MPS supervisor at {self._socket} does not tell of this GPU")
        return {demand.gpu: states.get(demand.gpu, untold) for demand in demands}

    async def close(self) -> None:
        """Close the channel; daemons go on."""
        await self._channel.close()
