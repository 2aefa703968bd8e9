"""What the driver itself asks for: NVML's field 230, from R570 on.

Source: NVML, ``nvmlDeviceGpuRecoveryAction_t`` (``NVML_FI_DEV_GET_GPU_RECOVERY_ACTION``), and NVIDIA's "GPU memory
error management", recovery action flag. Fields 226 and 227 were its numbers in early headers and are retired.
"""

from dataclasses import dataclass
from typing import Final

from cta_group_core.health.evidence import Repair

_NO_ACTION: Final = 0


@dataclass(frozen=True, slots=True)
class RecoveryAction:
    """One value of the field that asks for something."""

    asks_for: str
    """Completes the sentence "the driver asks ..."."""
    repair: Repair
    """What was done when the field goes back to none; for what needs no repair of this GPU, nothing."""


_ACTIONS: Final = {
    1: RecoveryAction("for a reset of this GPU", Repair.RESET),
    2: RecoveryAction("for a restart of the node", Repair.REBOOT),
    3: RecoveryAction("that all traffic between GPUs ends", Repair.NONE),
    4: RecoveryAction("for a reset once this GPU is drained; until then it works at reduced capacity", Repair.RESET),
    5: RecoveryAction("that the IMEX domain of the node is recovered", Repair.NONE),
    6: RecoveryAction("for a reset of this GPU's PCIe bus", Repair.RESET),
    7: RecoveryAction("for a restart of the whole system", Repair.REBOOT),
}


def recovery_action_of(value: int) -> RecoveryAction | None:
    """Return what a value of the field asks for; None for nothing. A value that is not known asks for something."""
    if value == _NO_ACTION:
        return None
    return _ACTIONS.get(value) or RecoveryAction(
        f"for recovery action {value}, which is newer than the table of this release", Repair.NONE
    )
