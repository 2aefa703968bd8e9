"""The layout of the repository: rules whose breach shows up far away from its cause."""

import operator
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_operator_folder_does_not_shadow_the_standard_library() -> None:
    """``import operator`` means Python's own module: an ``operator/__init__.py`` at the root would take its place."""
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert Path(str(operator.__file__)).is_relative_to(Path(str(sys.base_prefix)))


def test_tests_are_no_package() -> None:
    """No folder below tests/ is a package, so no test can lean on another test's module by accident."""
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_source_trees_hold_no_tests() -> None:
    """Tests live below tests/ only: what lies in a source tree is shipped."""
    trees = [ROOT / name / "src" for name in ("core", "plugin", "operator", "cli")]
    assert [path for tree in trees for path in tree.parent.rglob("test_*.py")] == []
    assert all(tree.is_dir() for tree in trees)


def test_test_files_have_unique_names() -> None:
    """A test file's name alone says which one it is, in reports and on the command line."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert {name for name, count in names.items() if count > 1} == set()
