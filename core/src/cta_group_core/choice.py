"""Annotations whose value is one of a few words."""

from enum import StrEnum
from typing import Final, TypeVar

from cta_group_core.errors import InvalidText

_SHOWN: Final = 63
Choice = TypeVar("Choice", bound=StrEnum)


def read_choice(choices: type[Choice], annotation: str, text: str) -> Choice:
    """Read an annotation; raises InvalidText that names it, what was given and what is allowed."""
    try:
        return choices(text)
    except ValueError:
        allowed = ", ".join(choices)
        raise InvalidText(f"annotation {annotation}: {text[:_SHOWN]!r} is none of {allowed}") from None
