"""Our reader against argparse itself, which is what vLLM parses with."""

import argparse
import re
from typing import Any, NoReturn

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.flags import ALIASES, ARITIES, Arity, Flag, resolve

_NARGS = {Arity.MANY: "+", Arity.OPTIONAL: "?"}
_ALIAS_OF = {flag.value: [alias for alias, of in ALIASES.items() if of is flag] for flag in Flag}


class Refused(Exception):
    """argparse would end the program with this message."""


class Parser(argparse.ArgumentParser):
    """An argparse parser with the flags of the table, in vLLM's way."""

    def __init__(self) -> None:
        super().__init__(add_help=False)
        self.add_argument("model_tag", nargs="?")
        for name, arity in ARITIES.items():
            if name in ALIASES:
                continue
            names = [name, *_ALIAS_OF.get(name, ())]
            if arity is Arity.SWITCH:
                self.add_argument(*names, action="store_true", dest=name)
            else:
                self.add_argument(*names, nargs=_NARGS.get(arity), dest=name)

    def error(self, message: str) -> NoReturn:
        """Raise instead of ending the test run."""
        raise Refused(message)

    def read(self, words: list[str]) -> dict[str, Any]:
        """Parse as vLLM: underscores of a flag's name are dashes."""
        return vars(self.parse_args([re.sub(r"^--[^.=]*", lambda m: m[0].replace("_", "-"), word) for word in words]))


PARSER = Parser()
API_SERVER = ["python3", "-m", "vllm.entrypoints.openai.api_server"]
_MATTERING = sorted({flag.value for flag in Flag if flag is not Flag.MODEL} | set(ALIASES))


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """Write a flag as people do: any flag or one that matters, cut short, with underscores."""
    name = draw(st.sampled_from(_MATTERING) | st.sampled_from(sorted(ARITIES)))
    shortest = 2 if name.startswith("--") else 1
    cut = draw(st.just(len(name)) | st.integers(min_value=shortest + 1, max_value=len(name)))
    written = name[:cut]
    return written[:2] + written[2:].replace("-", "_") if draw(st.booleans()) else written


values = st.sampled_from(["0.5", "2", "-1", "-0.5", "auto", "m", "a=b", "8k", "", "-", "two words", "1.0"])


# Not `--flag=--`: argparse of Python 3.11 drops such a value.
@st.composite
def given_flags(draw: st.DrawFn) -> list[str]:
    """Write a flag with the values that it takes, in one word or several."""
    spelling = draw(spellings())
    name = resolve(spelling).name
    if name is None or ARITIES[name] is Arity.SWITCH:
        return [spelling]
    if draw(st.booleans()):
        return [f"{spelling}={draw(values)}"]
    most = 3 if ARITIES[name] is Arity.MANY else 1
    return [spelling, *draw(st.lists(values.filter(bool), min_size=1, max_size=most))]


def lines(*odd: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    """Return command lines: mostly well formed, sometimes with any word anywhere."""
    parts = (
        given_flags() | given_flags() | given_flags() | st.one_of(spellings(), values, *odd).map(lambda word: [word])
    )
    return st.lists(parts, max_size=6).map(lambda found: [word for part in found for word in part])


def read_by_argparse(line: list[str]) -> dict[str, Any] | None:
    """Return what argparse reads, None for a line that it refuses."""
    try:
        return PARSER.read(line)
    except Refused:
        return None


@given(lines(st.just("--")))
@example(["-t=two words"])  # no flag to argparse, and so the model
def test_a_line_that_argparse_accepts_is_read_the_same(line: list[str]) -> None:
    """Same model, same winning value of every flag that matters, and no problem claimed that vLLM does not have."""
    expected = read_by_argparse(line)
    if expected is None or "--config" in line:  # what vLLM adds is not argparse's
        return
    found = read_arguments(API_SERVER, line)
    # The parser of this test has no types, so it takes any value.
    assert [one for one in found.problems if one.rejected and "a later value wins" not in one.reason] == []
    if found.last(Flag.MODEL) is None:
        assert (found.model or "").replace("_", "-") == (expected["model_tag"] or "")
    for flag in Flag:
        if ARITIES[flag.value] is Arity.SWITCH or flag is Flag.MODEL:
            continue
        wanted = expected[flag.value]
        last = found.last(flag)
        assert (last.text if last else None) == (wanted[0] if isinstance(wanted, list) else wanted)


@given(lines())
def test_a_line_that_argparse_refuses_has_a_problem(line: list[str]) -> None:
    """Every refusal is seen, though not each is certain for every release.

    Without a bare `--`: what stands before decides whether it is refused, and not alike in every Python.
    """
    if read_by_argparse(line) is None:
        assert read_arguments(API_SERVER, line).problems != ()


@pytest.mark.parametrize("name", sorted(ARITIES))
def test_every_flag_of_the_table_means_itself(name: str) -> None:
    """An exact spelling is never ambiguous, also when it begins another one."""
    assert resolve(name).name == name
