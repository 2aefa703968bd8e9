"""Words of a manifest as sentences repeat them: a pod may hold a million characters, what is written on it may not."""

from typing import Final

_LONGEST: Final = 300
_CUT: Final = "..."


def shown(text: str) -> str:
    """Return a text that others wrote so that a sentence can hold it: whole where it is short, else its beginning."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - len(_CUT)]}{_CUT}"
