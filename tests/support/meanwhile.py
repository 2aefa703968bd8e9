"""Something that goes on beside a test, again and again."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def meanwhile(step: Callable[[], object], *, pause_seconds: float = 0.0) -> Iterator[list[object]]:
    """Do something again and again until the block ends, and yield what came of it; its errors are the test's."""
    results: list[object] = []
    failed: list[BaseException] = []
    over = threading.Event()

    def do() -> None:
        try:
            while not over.wait(pause_seconds):
                results.append(step())
        except BaseException as error:  # noqa: BLE001 - the end of a thread: the test raises it
            failed.append(error)

    thread = threading.Thread(target=do)
    thread.start()
    try:
        yield results
    finally:
        over.set()
        thread.join()
        if failed:
            raise failed[0]
