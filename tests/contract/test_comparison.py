"""The comparison shows what it says: every test that it names exists, and no row is without a test or a reason."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))
PAINS = {*range(1, 7), *range(14, 20), *range(21, 29)}


def rows() -> dict[int, list[str]]:
    """Return the cells of each row of the table of pains, by number."""
    found = re.findall(r"^\| (\d+) \|(.*)\|$", TEXT, re.MULTILINE)
    return {int(number): [cell.strip() for cell in cells.split("|")] for number, cells in found}


@cache
def functions_of(path: str) -> frozenset[str]:
    """Return the names of the test functions of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(function.name for function in functions if function.name.startswith("test_"))


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
    assert len(re.findall(r"tests/", TEXT)) == len(re.findall(r"`tests/[\w/]+\.py::\w+`", TEXT))
