"""What a shell script is cut into: commands of words, words of parts, each part with its quotes."""

from dataclasses import dataclass
from enum import Enum


class Quote(Enum):
    """How a part of a word is quoted."""

    NONE = ""
    SINGLE = "'"
    DOUBLE = '"'


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a word: text as it is, or something that the shell replaces."""

    text: str
    """The text, or the whole expression with its dollar sign."""
    quote: Quote = Quote.NONE
    replaced: bool = False
    """True for ``$NAME``, ``${...}``, ``$(...)`` and backticks."""


@dataclass(frozen=True, slots=True)
class RawWord:
    """A word as written. ``items`` are the words of an array that is assigned (``A=(x y)``), else None."""

    parts: tuple[Part, ...]
    items: tuple["RawWord", ...] | None = None

    @property
    def source(self) -> str:
        """The word's text without its quotes, expressions as written: what ``eval`` reads again."""
        return "".join(part.text for part in self.parts)

    @property
    def plain(self) -> str | None:
        """The text when nothing in it is quoted or replaced; None otherwise."""
        if any(part.replaced or part.quote is not Quote.NONE for part in self.parts):
            return None
        return self.source


@dataclass(frozen=True, slots=True)
class RawCommand:
    """Words between two operators, and the operator before them (empty for the first)."""

    after: str
    words: tuple[RawWord, ...]
    depth: int = 0
    """In how many parentheses it stands: each is a shell of its own, whose variables end with it."""
    lowest: int = 0
    """The smallest depth since the command before."""


class Unreadable(ValueError):
    """The script ends inside a quote or an expression, or is too long to be looked at while somebody waits."""
