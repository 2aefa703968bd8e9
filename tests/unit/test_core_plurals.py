"""Numbers of things in sentences."""

import pytest

from cta_group_core.plurals import counted


@pytest.mark.parametrize(("number", "words"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods")])
def test_only_one_is_singular(number: int, words: str) -> None:
    """None is plural in English."""
    assert counted(number, "pod") == words
