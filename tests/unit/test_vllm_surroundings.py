"""Variables that kubelet puts into a container's words."""

import pytest

from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.surroundings import Surroundings, expand_references, resolve_variables


@pytest.mark.parametrize(
    ("text", "expanded", "unresolved"),
    [
        ("--port=$(PORT)", "--port=8000", ()),
        ("$(PORT)$(PORT)", "80008000", ()),
        ("$(NOT)", "$(NOT)", ("$(NOT)",)),
        ("$(SECRET)", "$(SECRET)", ("$(SECRET)",)),
        ("$$(PORT)", "$(PORT)", ()),
        ("$PORT $( $", "$PORT $( $", ()),
    ],
)
def test_kubelet_s_references_are_put_in(text: str, expanded: str, unresolved: tuple[str, ...]) -> None:
    """Known variables are replaced, a doubled dollar is one, everything else stays."""
    found = expand_references(text, {"PORT": "8000", "SECRET": None})
    assert (found.text, found.unresolved) == (expanded, unresolved)


def test_a_variable_may_use_those_before_it() -> None:
    """Also one whose value is not known, which makes it unknown itself."""
    given_variables = [("A", "1"), ("B", "$(A)2"), ("C", None), ("D", "$(C)"), ("A", "3")]
    assert resolve_variables(given_variables) == {"A": "3", "B": "12", "C": None, "D": None}


def test_a_reference_in_a_list_is_read_from_the_environment() -> None:
    """`--max-model-len=$(LEN)` has the value of the variable."""
    found = read_arguments(["vllm", "serve", "$(M)"], ["--max-model-len", "$(LEN)"], Surroundings({"LEN": "8k"}))
    assert found.model_length().value == 8000
    assert (found.model, found.model_known) == ("$(M)", False)


def test_variables_that_hold_each_other_twice_are_unknown() -> None:
    """As in a script."""
    variables = resolve_variables([("A0", "x" * 100), *((f"A{i + 1}", f"$(A{i})$(A{i})") for i in range(40))])
    assert variables["A40"] is None


def test_words_that_would_grow_without_end_are_unknown() -> None:
    """Admission reads what anybody writes."""
    found = expand_references("$(A)" * 1000, {"A": "x" * 1000})
    assert found.unresolved
    assert len(found.text) < 30_000
