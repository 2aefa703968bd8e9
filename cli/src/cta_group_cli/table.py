"""Plain columns for a terminal, as kubectl prints them."""

from collections.abc import Iterable, Sequence

_GAP = "   "

Cell = str | int


def table(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return the lines of a table: columns as wide as their widest cell, numbers to the right, no trailing blanks."""
    body = [list(row) for row in rows]
    cells = [list(header), *([str(cell) for cell in row] for row in body)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [bool(body) and all(isinstance(row[column], int) for row in body) for column in range(len(header))]
    return "\n".join(_line(row, widths, right) for row in cells)


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(row, widths, right, strict=True)
    )
    return _GAP.join(padded).rstrip()
