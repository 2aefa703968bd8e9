"""When time alone would change what was decided of waiting pods, so that they are looked at though nothing happens."""

from cta_group_operator.ports import Clock


class NextLook:
    """The earliest moment that anybody asked for while all of them were decided. Whoever is decided anew asks anew."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: float | None = None

    def ask(self, after_seconds: float | None) -> None:
        """Want a look after some seconds; None: not for this reason."""
        if after_seconds is not None:
            due = self._clock.monotonic() + after_seconds
            self._due = due if self._due is None else min(self._due, due)

    def take(self) -> float | None:
        """Return the seconds until then, None when nobody asked, and begin anew."""
        due, self._due = self._due, None
        return None if due is None else max(0.0, due - self._clock.monotonic())
