"""Moments as Kubernetes writes them: RFC 3339, in whole seconds."""

from datetime import datetime


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds from one moment to the other, never negative; 0 when either is no moment."""
    try:
        return max(0.0, (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
