"""Short ways to tell what happened to a GPU, for tests of its health."""

from cta_group_core.health.evidence import ResetEvidence
from cta_group_core.health.inputs import (
    PollOk,
    ResetSeen,
    Seen,
)
from cta_group_core.health.machine import DEFAULT_RULES, step
from cta_group_core.health.state import GpuState, HealthRules
from cta_group_core.health.verdict import Verdict, verdict_of

K = DEFAULT_RULES.clean_polls
OK = PollOk()
BOOT = ResetSeen(ResetEvidence.BOOT)
DRIVER_LOAD = ResetSeen(ResetEvidence.DRIVER_LOAD)


def after(*seen: Seen, state: GpuState | None = None, rules: HealthRules = DEFAULT_RULES, at: float = 0) -> GpuState:
    """Return the state after these observations, 10 seconds apart."""
    state = state or GpuState()
    for number, each in enumerate(seen):
        state = step(state, each, at + 10 * number, rules)
    return state


def polls(count: int) -> list[Seen]:
    """Return that many clean polls."""
    return [OK] * count


def told(*seen: Seen, state: GpuState | None = None, rules: HealthRules = DEFAULT_RULES) -> Verdict:
    """Return the verdict after these observations."""
    return verdict_of(after(*seen, state=state, rules=rules), rules)
