"""The states that the MPS supervisor tells, in the project's own types."""

from typing import Final

from cta_group_plugin.mps_trouble import MpsLoss, MpsTrouble
from cta_group_plugin.ports import MpsState
from cta_group_plugin.supervisor_api import supervisor_pb2 as api

_TROUBLES: Final = {api.TROUBLE_SILENT: MpsTrouble.SILENT, api.TROUBLE_FAULT: MpsTrouble.FAULT}


def decoded_state(state: api.State) -> MpsState:
    """Return the state of one GPU. A trouble that only a newer supervisor knows is none here: the reason tells it."""
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
        trouble=_TROUBLES.get(state.trouble),
    )
