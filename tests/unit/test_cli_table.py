"""Columns for a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from cta_group_cli.table import table

words = st.text("abc de", min_size=1, max_size=8).map(str.strip).filter(bool)


def test_text_to_the_left_numbers_to_the_right() -> None:
    """Columns are as wide as their widest cell; a column of numbers is aligned at its end."""
    assert table(("NODE", "FREE"), [("a", 5), ("node-b", 128)]) == "NODE     FREE\na           5\nnode-b    128"


def test_column_with_a_word_in_it_is_text() -> None:
    """A single word makes a column one of text, so that its header stays above."""
    assert table(("GPU",), [(1,), ("-",)]) == "GPU\n1\n-"


def test_header_stands_alone() -> None:
    """Without rows there is the header."""
    assert table(("A", "B"), []) == "A   B"


@given(st.lists(st.tuples(words, st.integers(0, 9999), words)))
def test_columns_start_together(rows: list[tuple[str, int, str]]) -> None:
    """In every line a column begins where its header begins, and no line ends with a blank."""
    lines = table(("FIRST", "COUNT", "LAST"), rows).splitlines()
    start = lines[0].index("LAST")
    assert [line[start:] for line in lines[1:]] == [row[2] for row in rows]
    assert all(line == line.rstrip() for line in lines)
