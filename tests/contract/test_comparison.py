"""The comparison shows what it says: every test that it names exists, and no row is without a test or a reason."""

import re

import pytest

from named_tests import ROOT, all_are_named_in_full, functions_of, named_in

TEXT = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
NAMED = named_in(TEXT)
PAINS = {*range(1, 7), *range(14, 20), *range(21, 29)}


def rows() -> dict[int, list[str]]:
    """Return the cells of each row of the table of pains, by number."""
    found = re.findall(r"^\| (\d+) \|(.*)\|$", TEXT, re.MULTILINE)
    return {int(number): [cell.strip() for cell in cells.split("|")] for number, cells in found}


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_each_test_that_is_named_exists(path: str, name: str) -> None:
    """A test that was renamed or removed takes its proof along."""
    assert name in functions_of(path)


def test_each_pain_has_a_row_with_a_test() -> None:
    """Three cells: there, here, shown by; the last names at least one test."""
    table = rows()
    assert set(table) == PAINS
    for number, cells in table.items():
        assert len(cells) == 3, number
        assert all(cells), number
        assert "`tests/" in cells[2], number


def test_nothing_that_looks_like_a_test_escapes_the_check() -> None:
    """Whatever begins with tests/ is a file and a function."""
    assert all_are_named_in_full(TEXT)
