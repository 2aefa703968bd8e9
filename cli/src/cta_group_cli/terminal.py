"""Where text meets a terminal: what objects of a cluster say may hold characters that a terminal obeys."""

import io
import sys
from typing import TextIO


def say(text: str, *, to: TextIO | None = None) -> None:
    """Print a text, on standard output unless ``to`` says otherwise; a closed one takes nothing."""
    print(printable(text), file=to)


def printable(text: str) -> str:
    """Return the text with everything that is not to be seen written as an escape; ends of lines stay."""
    return "".join(one if one == "\n" or one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def accept_every_character() -> None:
    """Write characters that the terminal's encoding lacks as escapes instead of failing on them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
