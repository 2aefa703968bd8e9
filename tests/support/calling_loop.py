"""Pods that are made again and again, for show, while a test disturbs what looks at them."""

import threading
from collections.abc import Callable

from cluster_harness.waiting import wait_for


class CallingLoop:
    """Asks one question again and again, in a thread of its own, and keeps the answers."""

    def __init__(self, ask: Callable[[], bool]) -> None:
        self._ask = ask
        self._ended = threading.Event()
        self.answers: list[bool] = []
        self.trouble: list[Exception] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self.answers.append(self._ask())
            except Exception as failed:  # noqa: BLE001 - the test must hear of it
                self.trouble.append(failed)
                return

    def wait_more(self, count: int) -> None:
        """Wait until it has asked ``count`` times more."""
        so_far = len(self.answers)
        wait_for(lambda: self.trouble or len(self.answers) >= so_far + count, f"{count} more calls")

    def end(self) -> list[bool]:
        """Ask no more, and return the answers; raises what went wrong."""
        self._ended.set()
        self._thread.join(timeout=60)
        if self.trouble:
            raise self.trouble[0]
        return self.answers
