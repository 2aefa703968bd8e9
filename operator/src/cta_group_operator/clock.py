"""The system's clock, the only place where time is read."""

import time

from cta_group_core.moments import rfc3339


class SystemClock:
    """Implements the port ``Clock``."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def utc_text(self) -> str:
        """Return the time of day in RFC 3339, whole seconds."""
        return rfc3339(time.time())
