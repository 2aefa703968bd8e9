"""A simulated MPS supervisor inside the plugin's process, for runs without a cluster. It limits nothing.

Every daemon it is asked for is there at once and allows what was asked. The real supervisor is a process of its own.
"""

from collections.abc import Mapping, Sequence

from cta_group_core.ids import GpuUuid
from cta_group_plugin.logs import EventLog
from cta_group_plugin.ports import MpsDemand, MpsState

_log = EventLog(__name__)


class SimulatedMpsControl:
    """Implements :class:`cta_group_plugin.ports.MpsControl` without any daemon."""

    def __init__(self) -> None:
        _log.warning("mps_is_simulated", effect="no limit of a slice is enforced")

    async def sync(self, demands: Sequence[MpsDemand], *, generation: int = 0) -> Mapping[GpuUuid, MpsState]:
        """Say that every daemon is ready. It is this process' own, so no other plugin asks it."""
        del generation
        return {
            demand.gpu: MpsState(ready=True, reason="", sm_percent=demand.sm_percent, memory_mib=demand.memory_mib)
            for demand in demands
        }

    async def close(self) -> None:
        """Nothing to release."""
