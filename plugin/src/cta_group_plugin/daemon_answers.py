"""What the states of MPS daemons say of their GPUs' health: a daemon that starts is no reason to refuse anybody."""

from collections.abc import Callable, Mapping
from typing import Final

from cta_group_core.health.inputs import MpsAnswer, MpsRead
from cta_group_core.ids import GpuUuid
from cta_group_plugin.ports import MpsState

_START_SECONDS: Final = 5.0
"""A daemon takes a second to start, and the first share of each GPU waits for it."""


class DaemonAnswers:
    """Remembers since when a daemon is not ready. ``clock``: seconds that never go back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._down_since: dict[GpuUuid, float] = {}

    def read(self, states: Mapping[GpuUuid, MpsState]) -> dict[GpuUuid, tuple[MpsRead]]:
        """Return what the newest states say; a GPU without one is forgotten."""
        self._down_since = {uuid: at for uuid, at in self._down_since.items() if uuid in states}
        return {uuid: (self._of(uuid, state),) for uuid, state in states.items()}

    def _of(self, uuid: GpuUuid, state: MpsState) -> MpsRead:
        if state.ready:
            self._down_since.pop(uuid, None)
            return MpsRead(MpsAnswer.READY)
        if state.has_fault:
            return MpsRead(MpsAnswer.FAULT, state.reason)
        seconds = self._clock() - self._down_since.setdefault(uuid, self._clock())
        return MpsRead(MpsAnswer.READY if seconds < _START_SECONDS else MpsAnswer.NOT_READY, state.reason)
