"""Says on stderr what a slow step is doing and for how long: silence of minutes looks like a hang."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

_LINE_INTERVAL_SECONDS = 20.0
_TTY_INTERVAL_SECONDS = 0.5


@contextlib.contextmanager
def progress(label: str) -> Iterator[None]:
    """Report a step until it ends: one live line on a terminal, a line now and then elsewhere."""
    finished = threading.Event()
    started = time.monotonic()
    reporter = threading.Thread(target=_report, args=(label, started, finished), daemon=True)
    reporter.start()
    try:
        yield
    finally:
        finished.set()
        reporter.join()


def _report(label: str, started: float, finished: threading.Event) -> None:
    live = sys.stderr.isatty()
    start, end = ("\r", "") if live else ("", "\n")
    while True:
        done = finished.wait(_TTY_INTERVAL_SECONDS if live else _LINE_INTERVAL_SECONDS)
        elapsed = time.monotonic() - started
        print(f"{start}{label}: {elapsed:.0f} s{' done' if done else ''}", end=end, file=sys.stderr, flush=True)
        if done:
            break
    if live:
        print(file=sys.stderr)
