"""How a tenant uses the memory of its GPU, as its pod says: who disturbs whom.

A slice holds SMs and memory, not bandwidth: on a real H200 three decoding neighbours made the time between tokens 43 %
longer for a small model, and 86 % for a larger one.
"""

from enum import StrEnum

from cta_group_core.choice import read_choice
from cta_group_core.names import ANNOTATION_ACCESS_PATTERN


class AccessPattern(StrEnum):
    """Value of the annotation ``ctagroup.dev/access-pattern``."""

    LATENCY_SENSITIVE = "latency-sensitive"
    BANDWIDTH_BOUND = "bandwidth-bound"


def read_pattern(text: str) -> AccessPattern:
    """Read the annotation; raises InvalidText that names what is allowed."""
    return read_choice(AccessPattern, ANNOTATION_ACCESS_PATTERN, text)


def parse_pattern(text: str) -> AccessPattern | None:
    """Read the annotation; None for a text that is no pattern: a wish that nobody understands decides nothing."""
    return AccessPattern(text) if text in set(AccessPattern) else None


def disturb(one: AccessPattern, other: AccessPattern | None) -> bool:
    """Tell whether two tenants are better kept apart: both say how they use a GPU, and one is bound by bandwidth."""
    return other is not None and AccessPattern.BANDWIDTH_BOUND in {one, other}
