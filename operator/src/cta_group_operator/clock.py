"""The system's clock, the only place where time is read."""

import time
from datetime import UTC, datetime


class SystemClock:
    """Implements the port ``Clock``."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def utc_text(self) -> str:
        """Return the time of day in RFC 3339, whole seconds."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
