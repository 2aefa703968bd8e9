"""The list of faults that the node survives shows what it says: every test that it names exists, no row has none."""

import re

import pytest

from named_tests import ROOT, all_are_named_in_full, functions_of, named_in

TEXT = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
FAULTS = [
    "kubelet restarted",
    "kubelet and plugin restarted, in both orders",
    "plugin killed while Allocate runs",
    "socket folder wiped",
    "API server away for ten minutes",
    "a call of the driver hangs",
    "one of eight GPUs lost and back",
    "a storm of XIDs",
    "MPS daemon killed",
    "MPS daemon wedged",
    "MPS daemon slow to start",
    "a GPU gone after a reboot, its groups still recorded",
    "disk full on the host path",
    "a thousand registrations",
]


def rows() -> dict[str, list[str]]:
    """Return the other cells of each row of the table, by its fault."""
    found = re.findall(r"^\| (?!fault|---)([^|]+?) \|(.*)\|$", TEXT, re.MULTILINE)
    return {fault: [cell.strip() for cell in cells.split("|")] for fault, cells in found}


def test_each_fault_has_a_row_with_a_test() -> None:
    """Three cells: during, after, shown by; the last names at least one test."""
    table = rows()
    assert [fault for fault in table if fault in FAULTS] == FAULTS
    for fault, cells in table.items():
        assert len(cells) == 3, fault
        assert all(cells), fault
        assert "`tests/" in cells[2], fault


@pytest.mark.parametrize(("path", "name"), named_in(TEXT))
def test_each_test_that_shows_a_fault_exists(path: str, name: str) -> None:
    """A test that was renamed or removed takes its proof along."""
    assert name in functions_of(path)


def test_nothing_that_looks_like_a_test_escapes_this_check() -> None:
    """Whatever begins with tests/ is a file and a function."""
    assert all_are_named_in_full(TEXT)
