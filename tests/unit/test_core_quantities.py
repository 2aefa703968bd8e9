"""Quantities must be read exactly: the API server prints 1000 groups as 1k."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import InvalidText
from cta_group_core.quantities import parse_count, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("32", 32),
        ("1k", 1000),
        ("2Ki", 2048),
        ("1.5Gi", 3 << 29),
        ("500m", Fraction(1, 2)),
        ("1e3", 1000),
        ("2E", 2 * 10**18),
        ("12E2", 1200),
        (".5", Fraction(1, 2)),
        ("0.032k", 32),
    ],
)
def test_suffixes(text: str, value: Fraction) -> None:
    """Every kind of suffix has its exact value."""
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["", "32x", "k", "1 Gi", "0x20", "\u0661", "--1", "1e", "NaN"])
def test_other_text_is_refused(text: str) -> None:
    """What is no quantity raises instead of becoming a number."""
    with pytest.raises(InvalidText):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["500m", "-1", "1.5"])
def test_count_is_whole_and_not_negative(text: str) -> None:
    """Groups are counted in whole units."""
    with pytest.raises(InvalidText):
        parse_count(text)


@given(st.integers(0, 10**15))
def test_plain_integers_read_back(value: int) -> None:
    """A plain integer is read as itself."""
    assert parse_count(str(value)) == value
