"""Moments as Kubernetes writes them: RFC 3339, in UTC and whole seconds."""

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """Return a moment in seconds since 1970 as text."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds from one moment to the other, never negative; 0 when either is no moment."""
    try:
        return max(0.0, (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
