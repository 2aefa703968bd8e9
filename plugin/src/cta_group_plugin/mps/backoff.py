"""When a daemon that ended, or could not be started, is started again. Pure: the time comes in."""

from dataclasses import dataclass, field

from cta_group_core.backoff import wait_seconds


@dataclass(slots=True)
class Backoff:
    """Doubles with every failure up to a cap, and begins anew after a long enough success. Times in seconds."""

    first_seconds: float
    cap_seconds: float
    calm_seconds: float
    """A start that held for this long was a success."""
    _failures: int = field(default=0, init=False)
    _wait_seconds: float = field(default=0.0, init=False)
    _failed_at: float = field(default=0.0, init=False)
    _started_at: float = field(default=0.0, init=False)

    def started(self, now: float) -> None:
        """Note an attempt."""
        self._started_at = now

    def failed(self, now: float) -> None:
        """Note that the attempt came to nothing, or that what it started has ended."""
        held = now - self._started_at
        self._failures = 1 if held >= self.calm_seconds else self._failures + 1
        self._wait_seconds = wait_seconds(self._failures, self.first_seconds, self.cap_seconds)
        self._failed_at = now

    def is_waiting(self, now: float) -> bool:
        """Tell whether it is too early to try again."""
        return self._failures > 0 and now - self._failed_at < self._wait_seconds

    def describe(self) -> str:
        """Say how long is waited, in words that do not change while it is waited."""
        return f"tried again {self._wait_seconds:g} s after that, failure {self._failures} in a row"
