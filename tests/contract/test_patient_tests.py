"""Tests hold on a busy machine: mistakes by which some failed in one run of many are not made again."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FOLDERS = ("api", "cluster", "component", "contract", "node", "support", "unit")
LEAST_PATIENCE_SECONDS = 30
_DEADLINES = {"timeout": 0, "wait_for": 2}
"""Functions that give up, and which of their arguments says after how many seconds."""
MISTAKES = """
async with asyncio.timeout(5):
    wait_for(is_so, "it", 20.0)
api.create("/api/v1/namespaces", body)
free.bind(("127.0.0.1", 0))
os.kill(pid or 0, signal.SIGKILL)
"""


@dataclass(frozen=True)
class Source:
    """A file with tests, or something that they use."""

    name: str
    text: str

    @cached_property
    def calls(self) -> list[tuple[str, ast.Call]]:
        """Every call with the name of what is called, without the object or module that it belongs to."""
        return list(_calls(ast.parse(self.text)))

    @cached_property
    def lines(self) -> list[str]:
        """The lines."""
        return self.text.splitlines()


Rule = Callable[[Source], Iterator[ast.Call]]


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr, node


def impatient(source: Source) -> Iterator[ast.Call]:
    """Find what gives up sooner than a busy machine may need, without a word why."""
    for name, call in source.calls:
        at = _DEADLINES.get(name)
        if at is None or len(call.args) <= at or "#" in source.lines[call.args[at].lineno - 1]:
            continue
        limit = getattr(call.args[at], "value", None)
        if isinstance(limit, int | float) and limit < LEAST_PATIENCE_SECONDS:
            yield call


def hasty_namespaces(source: Source) -> Iterator[ast.Call]:
    """Find namespaces whose service account nobody waits for: pods would be refused there for a moment."""
    if source.name.endswith("support/new_namespaces.py"):
        return
    for name, call in source.calls:
        if name == "create" and call.args and ast.unparse(call.args[0]) == "'/api/v1/namespaces'":
            yield call


def borrowed_ports(source: Source) -> Iterator[ast.Call]:
    """Find ports of the kernel's own range that are given back, so that somebody else may get them; see free_ports."""
    return (call for name, call in source.calls if name == "bind" and isinstance(call.args[0], ast.Tuple))


def signals_to_nobody(source: Source) -> Iterator[ast.Call]:
    """Find signals to a process that may be number 0, which is every process of the test."""
    return (
        call for name, call in source.calls if name == "kill" and call.args and isinstance(call.args[0], ast.BoolOp)
    )


RULES: tuple[Rule, ...] = (impatient, hasty_namespaces, borrowed_ports, signals_to_nobody)


@cache
def sources() -> list[Source]:
    """Return every file of the tests that need no GPU."""
    paths = sorted(path for folder in FOLDERS for path in TESTS.glob(f"{folder}/**/*.py"))
    return [Source(str(path.relative_to(TESTS.parent)), path.read_text(encoding="utf-8")) for path in paths]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_test_is_hasty(rule: Rule) -> None:
    """Deadlines below half a minute have a comment that says why, and what must be waited for is."""
    assert [f"{source.name}:{call.lineno}" for source in sources() for call in rule(source)] == []


def test_each_mistake_is_found() -> None:
    """By one rule and no other."""
    told = {rule.__name__: len(list(rule(Source("mistakes.py", MISTAKES)))) for rule in RULES}
    assert told == {"impatient": 2, "hasty_namespaces": 1, "borrowed_ports": 1, "signals_to_nobody": 1}
