"""What can be wrong with an MPS daemon and what its end has cost, as the supervisor tells it to everybody."""

from dataclasses import dataclass
from enum import StrEnum


class MpsTrouble(StrEnum):
    """What is wrong with an MPS daemon that runs."""

    SILENT = "silent"
    """It does not answer in time, or does not listen."""
    FAULT = "fault"
    """It answers, and a server of its is in state FAULT: all its clients have a sticky error, newcomers are refused."""


@dataclass(frozen=True, slots=True)
class MpsLoss:
    """A daemon or a server that ended under its clients. They are dead then: their contexts went with it."""

    at: float
    """Seconds since the epoch."""
    reason: str
    client_pids: tuple[int, ...]
