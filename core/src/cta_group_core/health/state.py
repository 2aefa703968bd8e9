"""What is remembered of one GPU's health.

A GPU is as well as its faults allow. A fault is *open* until what it needs was seen; once none is open the GPU has to
answer several polls in a row, with all its faults still on record, before they are forgotten and it is healthy again::

    HEALTHY --fatal, lost, silent--> UNHEALTHY --repaired, answers--> RECOVERING --clean polls--> HEALTHY
       |                                 ^                                                           ^
       +--suspicious--> SUSPECT ---------+ confirmed                                                 |
                           +------------------ clean polls, and the quarantine is over --------------+
"""

from dataclasses import dataclass, field
from enum import StrEnum

from cta_group_core.health.evidence import Repair
from cta_group_core.health.xid_policy import XidPolicy


class Phase(StrEnum):
    """How a GPU is."""

    HEALTHY = "Healthy"
    SUSPECT = "Suspect"
    """In quarantine: it may be well, and is about to be known."""
    UNHEALTHY = "Unhealthy"
    RECOVERING = "Recovering"
    """Repaired as far as can be told; it has yet to prove it."""


class FaultKind(StrEnum):
    """What a fault is about; a GPU has at most one of each. In the order in which they are told."""

    XID = "xid"
    RECOVERY_ACTION = "recovery-action"
    LOST = "lost"
    ROW_REMAP = "row-remap"
    SILENT = "silent"
    SUSPICION = "suspicion"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that speaks against handing out groups of a GPU."""

    kind: FaultKind
    reason: str
    """For people: why, without a full stop. Never empty."""
    since: float
    """When it began, in the caller's seconds."""
    latest: float
    """When it was seen last."""
    needs: Repair = Repair.NONE
    """What ends it. For a suspicion: what it needs once a failed poll has confirmed it."""
    is_open: bool = True
    calls_may_hang: bool = False
    driver_asks: bool = False
    """The driver was seen asking for a repair since this happened, so that its contentment later means something."""

    def __post_init__(self) -> None:
        if not self.reason:
            raise ValueError(f"a fault of kind {self.kind} says no reason")

    @property
    def is_hard(self) -> bool:
        """Tell whether it is known to be broken, rather than suspected."""
        return self.is_open and self.kind is not FaultKind.SUSPICION


@dataclass(frozen=True, slots=True)
class MpsTrouble:
    """Why the MPS daemon of a GPU serves nobody now."""

    reason: str
    since: float
    is_fault: bool = False
    """Its clients must end before it serves again; otherwise it is away, or about to be there."""


@dataclass(frozen=True, slots=True)
class HealthRules:
    """How strict the machine is. Times in seconds."""

    policy: XidPolicy = field(default_factory=XidPolicy)
    clean_polls: int = 3
    """Polls in a row that a GPU must answer before it is healthy again."""
    failed_polls: int = 2
    """Polls in a row that a GPU must fail before that is held against it: one may be the driver's hiccup."""
    quarantine_seconds: float = 60.0
    """How long a suspicion holds new work back after it was seen last, if nothing confirms it."""
    calm_seconds: float = 600.0
    """A GPU that breaks within this time of its return needs twice the clean polls of the time before."""
    most_doublings: int = 3

    def __post_init__(self) -> None:
        if min(self.clean_polls, self.failed_polls) < 1 or self.most_doublings < 0:
            raise ValueError(f"{self}: at least one poll must decide")


@dataclass(frozen=True, slots=True)
class GpuState:
    """The health of one GPU. The default is a GPU of which nothing bad is known."""

    faults: tuple[Fault, ...] = ()
    """Of different kinds, in the order of :class:`FaultKind`; closed ones stay until the GPU is healthy."""
    clean_polls: int = 0
    """Answered in a row, counted once no fault is open but suspicions."""
    failed_polls: int = 0
    """Failed in a row, counted as far as it matters."""
    relapses: int = 0
    healed_at: float | None = None
    double_bit_errors: int | None = None
    """Counter as read last."""
    mps: MpsTrouble | None = None
    notice: str = ""
    """The newest thing worth telling that takes nothing out of service; forgotten at the next reset."""

    def __post_init__(self) -> None:
        kinds = [fault.kind for fault in self.faults]
        if kinds != sorted(set(kinds), key=list(FaultKind).index):
            raise ValueError(f"faults must be of different kinds and in order; given {kinds}")
        if min(self.clean_polls, self.failed_polls, self.relapses) < 0:
            raise ValueError("counters begin at 0")

    @property
    def phase(self) -> Phase:
        """How the GPU is."""
        if not self.faults:
            return Phase.HEALTHY
        if any(fault.is_hard for fault in self.faults):
            return Phase.UNHEALTHY
        return Phase.SUSPECT if any(fault.is_open for fault in self.faults) else Phase.RECOVERING

    @property
    def since(self) -> float | None:
        """When it stopped being healthy; None for a healthy GPU."""
        return min((fault.since for fault in self.faults), default=None)

    @property
    def mps_ready(self) -> bool:
        """False while the MPS daemon is known to serve nobody. One that was never needed is no trouble."""
        return self.mps is None

    def fault(self, kind: FaultKind) -> Fault | None:
        """Return the fault of a kind, open or not."""
        return next((fault for fault in self.faults if fault.kind is kind), None)
