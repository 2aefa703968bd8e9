"""Waiting for a condition, with a deadline: the only way in which the harness lets time pass."""

import time
from collections.abc import Callable
from typing import TypeVar

from cluster_harness.errors import DeadlineError

PATIENCE_SECONDS = 180.0
"""Long for whatever is waited for, so that it costs a test only where it fails: a busy machine may take a minute."""
_INTERVAL_SECONDS = 0.1
_REST_PER_PROBE = 2.0
"""A probe that takes long (a program to be started) takes a third of the time at most, so that others go on."""

T = TypeVar("T")


def wait_for(
    probe: Callable[[], T | None],
    what: str,
    timeout_seconds: float = PATIENCE_SECONDS,
    seen: Callable[[], object] | None = None,
) -> T:
    """Return the first truthy answer of ``probe``, asked ten times a second or less.

    Raises DeadlineError after ``timeout_seconds``. It names ``what`` and ends with the last answer, or with what
    ``seen`` returns then: how things are in place of that. The last look begins after the deadline: a machine that
    stood still meanwhile does not cost the probe its chance.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        asked = time.monotonic()
        answer = probe()
        if answer:
            return answer
        if asked > deadline:
            last = answer if seen is None else seen()
            raise DeadlineError(f"{what}: not within {timeout_seconds:g} s, last seen {last!r}")
        time.sleep(max(_INTERVAL_SECONDS, _REST_PER_PROBE * (time.monotonic() - asked)))
