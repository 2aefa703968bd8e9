"""Logs that a program sets up in the process of a test end with that test."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_logs() -> Iterator[None]:
    """Take away afterwards what was set up: it would write to a stream that is closed by then, for all tests to come.

    The handlers of pytest are its own affair.
    """
    root = logging.getLogger()
    level = root.level
    try:
        yield
    finally:
        root.setLevel(level)
        for handler in [it for it in root.handlers if type(it) is logging.StreamHandler]:
            root.removeHandler(handler)
