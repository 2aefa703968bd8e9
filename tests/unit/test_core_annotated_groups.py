"""What the annotation about groups means, wherever it is read."""

import pytest

from cta_group_core.annotated_groups import annotated_container, annotated_groups
from cta_group_core.errors import InvalidText

TWO = ["web", "vllm"]


def test_a_whole_number_above_zero() -> None:
    """As people write it."""
    assert annotated_groups("32") == 32


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "32 ", "٣٢", "9" * 10, "many"])
def test_anything_else_is_refused(text: str) -> None:
    """With what was given."""
    with pytest.raises(InvalidText, match="is not a whole number above 0"):
        annotated_groups(text)


def test_who_gets_them() -> None:
    """The named container, whatever else; then the one with whole GPUs; then the only one."""
    assert annotated_container(TWO, "web", [1]) == 0
    assert annotated_container(TWO, None, [1]) == 1
    assert annotated_container(["vllm"], None, []) == 0


@pytest.mark.parametrize(("named", "with_gpus"), [("none", [1]), (None, []), (None, [0, 1])])
def test_no_one_in_particular(named: str | None, with_gpus: list[int]) -> None:
    """The containers are named, and how to choose."""
    with pytest.raises(InvalidText, match=r"which of web, vllm gets the groups\? Say ctagroup.dev/"):
        annotated_container(TWO, named, with_gpus)
