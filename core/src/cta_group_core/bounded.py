"""Numbers and texts of a status, cut to what the schema of its kind takes.

What a status repeats was asked for or said by others, and has no bound of its own: quantities go up to 2^63,
annotations to 256 KiB. One number too large and the API server takes nothing of the status. Sentences keep the exact
numbers.
"""

from typing import Annotated, Final

from pydantic import AfterValidator

COUNT_MOST: Final = 2**31 - 1
"""``format: int32`` of ``crds/``."""
TEXT_MOST: Final = 32768
"""``maxLength`` of messages in ``crds/``."""


def shortened(text: str, most: int) -> str:
    """Return a text of ``most`` characters at most; where the end is left out, the last one says so."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _count(number: int) -> int:
    return min(number, COUNT_MOST)


def _text(text: str) -> str:
    return shortened(text, TEXT_MOST)


Count = Annotated[int, AfterValidator(_count)]
"""A number that is told; what is larger than 2147483647 is told as that."""
Text = Annotated[str, AfterValidator(_text)]
"""Words that are told; the end of a very long text is left out."""
