"""Tests that documents name as their proof: which a text names, and which a file has."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def named_in(text: str) -> list[tuple[str, str]]:
    """Return file and function of every test that a text names, each once."""
    return sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)))


def all_are_named_in_full(text: str) -> bool:
    """Tell whether whatever begins with tests/ is a file and a function."""
    return len(re.findall(r"tests/", text)) == len(re.findall(r"`tests/[\w/]+\.py::\w+`", text))


@cache
def functions_of(path: str) -> frozenset[str]:
    """Return the names of the test functions of a file, named from the root of the project."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(function.name for function in functions if function.name.startswith("test_"))
