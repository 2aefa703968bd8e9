"""Every time limit and rhythm of the supervisor."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Timing:
    """Defaults for a node; tests use shorter ones."""

    command_seconds: float = 2.0
    """A daemon answers a command within this, or counts as silent."""
    driver_seconds: float = 5.0
    """The driver answers about a compute mode within this."""
    poll_seconds: float = 5.0
    """Between two looks at a daemon that runs; one that ends is noticed at once."""
    starting_poll_seconds: float = 0.1
    """Between two looks at a daemon that was just started."""
    start_seconds: float = 10.0
    """A daemon listens this long after its start, or is told as not listening."""
    sync_seconds: float = 2.5
    """How long one Sync waits for the slowest GPU: long enough to find out that a daemon is silent."""
    slow_seconds: float = 1.0
    """A GPU that was not ready after a look that took longer than this is not waited for at all."""
    leave_seconds: float = 15.0
    """A supervisor that stops gives each GPU this long: less than the grace period of its pod."""
    verify_seconds: float = 30.0
    """Between two times that limits and compute modes which were right are read again."""
    idle_seconds: float = 60.0
    """A daemon without clients is ended when unwanted for this long: longer than the device plugin takes to restart."""
    wedged_seconds: float = 30.0
    """A daemon in trouble without a client is killed after this; see :mod:`.trouble`."""
    fault_seconds: float = 60.0
    """A daemon whose server stays in state FAULT is killed after this, whatever its clients do."""
    backoff_first_seconds: float = 0.5
    backoff_cap_seconds: float = 30.0
    backoff_calm_seconds: float = 60.0
    """A daemon that ran this long begins with the first wait again when it ends."""


SIMULATED: Final = Timing(command_seconds=5.0, sync_seconds=6.0)
"""For simulated daemons: each command is a Python process, which takes its time to start on a busy machine."""
