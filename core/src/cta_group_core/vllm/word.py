"""One word of a command line, and where it stands in the container."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Place:
    """Where a word stands in the container."""

    field: Literal["command", "args"]
    index: int


@dataclass(frozen=True, slots=True)
class Word:
    """One argument of vLLM. ``place`` is None when it comes out of a shell string, a file or a variable."""

    text: str
    place: Place | None
    unresolved: tuple[str, ...] = ()
    """Parts of the text that something replaces before vLLM sees them, with what is not known: ``$(NAME)``, ``$1``."""
    quoted: bool = True
    """False where a shell makes several words, or none, of what is not known."""
