"""Kubernetes quantities as exact numbers: ``500m``, ``2Gi``, ``1k`` (how the API server prints 1000 groups).

Source of the suffixes: Kubernetes API reference, "Quantity".
"""

import re
from fractions import Fraction
from functools import lru_cache

from cta_group_core.errors import InvalidText

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?", re.ASCII)
_THOUSANDS = "kMGTPE"
_SCALES = {
    "": Fraction(1),
    **{suffix: Fraction(1, 1000 ** (power + 1)) for power, suffix in enumerate("mun")},
    **{suffix: Fraction(1000 ** (power + 1)) for power, suffix in enumerate(_THOUSANDS)},
    **{f"{suffix.upper()}i": Fraction(1024 ** (power + 1)) for power, suffix in enumerate(_THOUSANDS)},
}


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Fraction:
    """Return the exact value, or raise :class:`InvalidText`."""
    read = _QUANTITY.fullmatch(text)
    if not read:
        raise InvalidText(f"quantity {text!r}: must be a number with a suffix such as m, k, M, Gi")
    number, suffix, exponent = read.groups()
    return Fraction(number) * (Fraction(10) ** int(exponent) if exponent else _SCALES[suffix or ""])


@lru_cache(maxsize=4096)
def parse_count(text: str) -> int:
    """Return a whole number of units of an extended resource, or raise :class:`InvalidText`."""
    value = parse_quantity(text)
    if value.denominator != 1 or value < 0:
        raise InvalidText(f"quantity {text!r}: an extended resource is counted in whole units, 0 or more")
    return int(value)
