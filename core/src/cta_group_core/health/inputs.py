"""What can be seen of a GPU. Each is one input of :func:`cta_group_core.health.machine.step`."""

from dataclasses import dataclass
from enum import Enum

from cta_group_core.health.evidence import ResetEvidence


@dataclass(frozen=True, slots=True)
class XidSeen:
    """The driver reported an XID of this GPU."""

    code: int


@dataclass(frozen=True, slots=True)
class Lost:
    """The driver says that this GPU is gone, or does not list it any more."""

    detail: str = ""


@dataclass(frozen=True, slots=True)
class FoundAgain:
    """A GPU that was lost is listed again."""


@dataclass(frozen=True, slots=True)
class RecoveryActionRead:
    """The driver's recovery action (field 230) was read."""

    value: int | None
    """None: this driver does not have the field."""


@dataclass(frozen=True, slots=True)
class RowRemapRead:
    """The state of the spare rows of memory was read."""

    failed: bool
    """A row could not be replaced. Rows that only wait for a reset are no failure."""


@dataclass(frozen=True, slots=True)
class EccRead:
    """The volatile counter of double-bit errors was read."""

    double_bit: int


class MpsAnswer(Enum):
    """How the MPS daemon of a GPU is doing."""

    READY = "ready"
    NOT_READY = "not ready"
    """It does not answer, or is being started."""
    FAULT = "fault"
    """A client's fault ended all its clients; it serves no new ones until they are gone."""


@dataclass(frozen=True, slots=True)
class MpsRead:
    """The MPS daemon of this GPU was asked."""

    answer: MpsAnswer
    reason: str = ""
    """In words; for an answer that is not ready."""


@dataclass(frozen=True, slots=True)
class PollOk:
    """The GPU resolved by its UUID and answered a cheap question. Facts that it does not tell are no failure."""


@dataclass(frozen=True, slots=True)
class PollFailed:
    """It did not."""

    problem: str


@dataclass(frozen=True, slots=True)
class Suspected:
    """Something outside of the driver speaks against new work on this GPU for now.

    Such as memory of an ended process that is not given back.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class ResetSeen:
    """It was proved that the GPU, or more than it, was started anew."""

    evidence: ResetEvidence


Seen = (
    XidSeen
    | Lost
    | FoundAgain
    | RecoveryActionRead
    | RowRemapRead
    | EccRead
    | MpsRead
    | PollOk
    | PollFailed
    | Suspected
    | ResetSeen
)
"""Everything that the machine takes."""
