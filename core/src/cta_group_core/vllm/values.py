"""Values of flags, with the types that vLLM gives them. What cannot be parsed is said, never guessed."""

import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Self

from cta_group_core.errors import InvalidText
from cta_group_core.vllm.shown import shown

_SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_STEPS = 10_000
_ENDLESS = 10**18
"""More than any vLLM can have of anything; Python prints no number of more than 4300 digits."""


def human_int(text: str) -> int:
    """Read an integer as vLLM does: ``8192``, ``8k`` (decimal), ``8K`` (binary), ``25.6k``; raise InvalidText."""
    stripped = text.strip()
    suffixed = _SUFFIXED.fullmatch(stripped)
    if suffixed is None:
        return plain_int(stripped)
    number, suffix = suffixed.groups()
    if suffix in _BINARY and "." in number:
        raise InvalidText(
            f"{shown(text)!r}: vLLM allows no decimals before {suffix}; {shown(number)}{suffix.lower()} is decimal"
        )
    if suffix in _DECIMAL:
        return _counted(int(Decimal(number) * _DECIMAL[suffix]), text)
    return plain_int(number) * _BINARY[suffix]


def _counted(number: int, text: str) -> int:
    """Return a number that can be one of tokens, bytes or processes; what is reckoned with it stays printable."""
    if abs(number) >= _ENDLESS:
        raise InvalidText(f"{shown(text)!r} is not a whole number below 10^18")
    return number


def model_length(text: str) -> int | None:
    """Read ``--max-model-len``; None for ``auto`` and ``-1`` (as much as fits)."""
    return None if text.strip().lower() in {"auto", "-1"} else human_int(text)


def plain_int(text: str) -> int:
    """Read a whole number; raise InvalidText."""
    try:
        return _counted(int(text), text)
    except ValueError:
        raise InvalidText(f"{shown(text)!r} is not a whole number below 10^18") from None


@dataclass(frozen=True, slots=True, order=True)
class Utilization:
    """A share of a GPU's total memory, in ten-thousandths: 2275 is 0.2275."""

    ten_thousandths: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a number above 0 and up to 1 as vLLM does, rounded up: a value compared with a limit never looks lower.

        Raises :class:`InvalidText`.
        """
        value = _number(text)
        if not 0 < value <= 1:
            raise InvalidText(f"{shown(text)!r}: a share of the GPU's memory is above 0 and at most 1")
        return cls(int((value * _STEPS).to_integral_value(ROUND_CEILING)))

    @classmethod
    def at_most(cls, part: int, whole: int) -> Self:
        """Return ``part / whole`` rounded down to four decimals; ``part`` may be negative, ``whole`` may not."""
        return cls(part * _STEPS // whole)

    def of(self, whole: int) -> int:
        """Return this share of a whole, rounded down."""
        return self.ten_thousandths * whole // _STEPS

    def __str__(self) -> str:
        return f"{Decimal(self.ten_thousandths) / _STEPS:f}"


def _number(text: str) -> Decimal:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        raise InvalidText(f"{shown(text)!r} is not a number") from None
    if not value.is_finite():
        raise InvalidText(f"{shown(text)!r} is not a number")
    return value
