"""What a broken GPU needs before it is trusted again, and what proves that it got it."""

from dataclasses import dataclass
from enum import Enum, IntEnum


class Repair(IntEnum):
    """What must have happened to a GPU. Larger ones include the smaller."""

    NONE = 0
    """Nothing: a GPU that answers again is well."""
    RESET = 1
    """The GPU was reset, by ``nvidia-smi --gpu-reset``, by loading the driver anew, or with its node."""
    REBOOT = 2
    """The node was started anew."""


class ResetEvidence(Enum):
    """What was seen that proves a repair."""

    BOOT = "the node was started anew"
    """Its boot id is another one."""
    DRIVER_LOAD = "the driver was loaded anew"
    GPU_UPTIME = "the GPU was reset"
    """Its own uptime is smaller than it was (NVML tells it from R615 on)."""
    PERSON = "a person says that it was repaired"

    @property
    def proves(self) -> Repair:
        """The largest repair that this is proof of. A person's word is believed."""
        return Repair.REBOOT if self in {ResetEvidence.BOOT, ResetEvidence.PERSON} else Repair.RESET


@dataclass(frozen=True, slots=True)
class Epoch:
    """Marks that stay the same until something is started anew. ``None``: not known, which never proves anything."""

    boot_id: str | None = None
    """Linux' ``/proc/sys/kernel/random/boot_id``."""
    driver_load: str | None = None
    """Anything that changes whenever the driver is loaded, such as the time at which its module was."""
    repaired: str | None = None
    """What a person wrote to say that a GPU was repaired; another text says it of another time."""


def evidence_between(before: Epoch, now: Epoch) -> tuple[ResetEvidence, ...]:
    """Return what the difference between two moments proves, the strongest first."""
    marks = {
        ResetEvidence.BOOT: (before.boot_id, now.boot_id),
        # A word that was not there before counts too: this is how a person begins to say it.
        ResetEvidence.PERSON: (before.repaired or "", now.repaired),
        ResetEvidence.DRIVER_LOAD: (before.driver_load, now.driver_load),
    }
    return tuple(
        evidence for evidence, (old, new) in marks.items() if old is not None and new is not None and old != new
    )
