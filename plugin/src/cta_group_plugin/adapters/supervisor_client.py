"""The MPS supervisor of this node, over its socket."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import grpc.aio

from cta_group_core.ids import GpuUuid
from cta_group_plugin.ports import MpsDemand, MpsLoss, MpsState
from cta_group_plugin.sockets import with_hint
from cta_group_plugin.supervisor_api import supervisor_pb2 as api
from cta_group_plugin.supervisor_api.supervisor_pb2_grpc import MpsSupervisorStub

_TIMEOUT_SECONDS: Final = 10.0
"""The supervisor waits a few seconds itself for a daemon that is starting."""


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
            reply = await self._stub.Sync(request, timeout=_TIMEOUT_SECONDS)
        except grpc.aio.AioRpcError as error:
            told = f"{self._socket} does not answer: {error.code().name}: {error.details()}"
            reason = with_hint(f"the MPS supervisor at {told}")
            return {demand.gpu: MpsState(ready=False, reason=reason, is_told=False) for demand in demands}
        return {GpuUuid(state.gpu_uuid): _state(state) for state in reply.states}

    async def close(self) -> None:
        """Close the channel; daemons go on."""
        await self._channel.close()


def _state(state: api.State) -> MpsState:
    loss = None
    if state.HasField("loss"):
        pids = tuple(state.loss.client_pids)
        loss = MpsLoss(at=state.loss.at_seconds, reason=state.loss.reason, client_pids=pids)
    return MpsState(
        ready=state.ready,
        # Whoever shows the reason names the GPU already.
        reason=state.reason.removeprefix(f"GPU {state.gpu_uuid}: "),
        sm_percent=state.sm_percent,
        memory_mib=state.memory_mib,
        client_pids=tuple(state.client_pids),
        loss=loss,
    )
