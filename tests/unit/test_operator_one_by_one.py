"""What the API server says of one object does not end the turns of the others, in no loop of the operator."""

import ast
from pathlib import Path

import pytest

import cta_group_operator
from cta_group_operator.errors import ApiUnavailable, Conflict, LeadershipLost
from cta_group_operator.one_by_one import OneByOne

SOURCE = Path(cta_group_operator.__file__).parent
FOLDERS = ("admission", "handlers", "reconcile")
HARMLESS = {"asyncio.sleep", "self._events.write", "kube.get"}
"""What a loop may await without more: none of it raises an ApiError, or (``trust.py``) all of it is needed at once."""


def test_everyone_has_a_turn_and_the_first_error_is_raised_at_the_end() -> None:
    """Errors of the API are kept; what is no Conflict comes before what is repeated anyway."""
    turns, had = OneByOne(), []
    for number, failure in enumerate((None, Conflict("newer"), ApiUnavailable("away"), None)):
        with turns.one(number):
            had.append(number)
            if failure is not None:
                raise failure
    assert had == [0, 1, 2, 3]
    with pytest.raises(ApiUnavailable, match="away"):
        turns.end()
    OneByOne().end()


def test_what_ends_all_work_is_not_kept() -> None:
    """A lost lease and a fault of ours go through at once."""
    turns = OneByOne()
    for ends in (LeadershipLost("gone"), ValueError("ours")):
        with pytest.raises(type(ends)), turns.one("x"):
            raise ends
    assert turns.failed == []


_LOOPS = (ast.For, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp)


def unguarded(tree: ast.AST) -> list[str]:
    """Return what is awaited for each of several objects without a turn of its own, as it is written."""
    found: list[str] = []

    def visit(node: ast.AST, *, in_loop: bool, guarded: bool) -> None:
        if isinstance(node, ast.With):
            guarded = guarded or any(_is_turn(item.context_expr) for item in node.items)
        elif isinstance(node, ast.Try):
            guarded = guarded or any(_is_api_error(handler.type) for handler in node.handlers)
        elif isinstance(node, ast.Await) and in_loop and not guarded and not _is_harmless(node.value):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
        for child in ast.iter_child_nodes(node):
            is_source = isinstance(child, ast.comprehension) or child is getattr(node, "iter", None)
            begins = isinstance(node, _LOOPS) and not is_source
            visit(child, in_loop=in_loop or begins, guarded=guarded and not begins)

    visit(tree, in_loop=False, guarded=False)
    return found


def _is_api_error(caught: ast.expr | None) -> bool:
    return isinstance(caught, ast.Name) and caught.id == "ApiError"


def _is_turn(entered: ast.expr) -> bool:
    return isinstance(entered, ast.Call) and isinstance(entered.func, ast.Attribute) and entered.func.attr == "one"


def _is_harmless(awaited: ast.expr) -> bool:
    """Tell whether a call raises no ApiError, or gives the turns itself, which it is handed."""
    if not isinstance(awaited, ast.Call):
        return False
    return ast.unparse(awaited.func) in HARMLESS or "turns" in map(ast.unparse, awaited.args)


def test_the_rule_sees_a_loop_without_turns() -> None:
    """It finds an await in a loop, and takes one that has a turn."""
    bare = "async def f():\n for x in xs:\n  await self._api.delete(x)\n"
    fair = "async def f():\n for x in xs:\n  with turns.one(x):\n   await self._api.delete(x)\n"
    kept = (
        "async def f():\n for x in xs:\n  try:\n   await self._api.get(x)\n  except ApiError as no:\n   failed = no\n"
    )
    short = "async def f():\n return [await self._api.get(x) for x in await all()]\n"
    assert unguarded(ast.parse(bare)) == ["line 3: await self._api.delete(x)"]
    assert unguarded(ast.parse(fair)) == unguarded(ast.parse(kept)) == []
    assert unguarded(ast.parse(kept.replace("ApiError", "NotFound"))) != []
    assert unguarded(ast.parse(short)) == ["line 2: await self._api.get(x)"]


@pytest.mark.parametrize(
    "file", [file for folder in FOLDERS for file in sorted((SOURCE / folder).glob("*.py"))], ids=lambda file: file.name
)
def test_every_loop_over_objects_gives_each_its_turn(file: Path) -> None:
    """Whoever adds a loop that calls the API server for each of several objects uses :class:`OneByOne`, or catches."""
    assert unguarded(ast.parse(file.read_text())) == []
