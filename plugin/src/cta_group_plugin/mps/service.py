"""The supervisor's gRPC service: decodes, calls, encodes."""

from collections.abc import Iterable

import grpc

from cta_group_core.errors import InvalidText
from cta_group_core.ids import GpuUuid, parse_gpu_uuid
from cta_group_plugin.mps.supervisor import MpsSupervisor
from cta_group_plugin.mps_trouble import MpsTrouble
from cta_group_plugin.ports import MpsDemand, MpsState, whole_demand
from cta_group_plugin.supervisor_api import supervisor_pb2, supervisor_pb2_grpc

_WHOLE_PERCENT = 100
_TROUBLES = {
    None: supervisor_pb2.TROUBLE_NONE,
    MpsTrouble.SILENT: supervisor_pb2.TROUBLE_SILENT,
    MpsTrouble.FAULT: supervisor_pb2.TROUBLE_FAULT,
}


class SupervisorService(supervisor_pb2_grpc.MpsSupervisorServicer):
    """Serves ``MpsSupervisor``."""

    def __init__(self, supervisor: MpsSupervisor) -> None:
        self._supervisor = supervisor

    async def Sync(  # noqa: N802 - gRPC's name
        self,
        request: supervisor_pb2.SyncRequest,
        context: "grpc.aio.ServicerContext[supervisor_pb2.SyncRequest, supervisor_pb2.SyncReply]",
    ) -> supervisor_pb2.SyncReply:
        """Take the demands of the node and return the states; INVALID_ARGUMENT for what can never be meant."""
        try:
            demands = decoded_demands(request.demands)
        except InvalidText as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        states = await self._supervisor.sync(demands, generation=request.generation)
        return supervisor_pb2.SyncReply(states=[_encoded(gpu, state) for gpu, state in states.items()])

    async def Look(  # noqa: N802 - gRPC's name
        self,
        _request: supervisor_pb2.LookRequest,
        _context: "grpc.aio.ServicerContext[supervisor_pb2.LookRequest, supervisor_pb2.SyncReply]",
    ) -> supervisor_pb2.SyncReply:
        """Return what is so now."""
        return supervisor_pb2.SyncReply(
            states=[_encoded(gpu, state) for gpu, state in self._supervisor.states().items()]
        )


def decoded_demands(demands: Iterable[supervisor_pb2.Demand]) -> tuple[MpsDemand, ...]:
    """Return the demands as values; raise InvalidText for a wrong UUID or percentage, and for a GPU named twice."""
    decoded = tuple(_decoded(demand) for demand in demands)
    if len({demand.gpu for demand in decoded}) < len(decoded):
        raise InvalidText("a GPU is demanded twice: name each once, with its largest share")
    return decoded


def _decoded(demand: supervisor_pb2.Demand) -> MpsDemand:
    gpu = parse_gpu_uuid(demand.gpu_uuid)
    if demand.whole:
        return whole_demand(gpu)
    if not 1 <= demand.sm_percent <= _WHOLE_PERCENT:
        raise InvalidText(f"GPU {gpu}: sm_percent is {demand.sm_percent}; it must be 1 to {_WHOLE_PERCENT}")
    return MpsDemand(gpu=gpu, sm_percent=demand.sm_percent, memory_mib=demand.memory_mib)


def _encoded(gpu: GpuUuid, state: MpsState) -> supervisor_pb2.State:
    loss = None
    if state.loss is not None:
        pids = state.loss.client_pids
        loss = supervisor_pb2.Loss(at_seconds=state.loss.at, reason=state.loss.reason, client_pids=pids)
    return supervisor_pb2.State(
        gpu_uuid=gpu,
        ready=state.ready,
        reason=state.reason,
        sm_percent=state.sm_percent,
        memory_mib=state.memory_mib,
        client_pids=state.client_pids,
        loss=loss,
        trouble=_TROUBLES[state.trouble],
    )
