"""The dashboard's first panels in words, for a terminal."""

from collections.abc import Iterable, Sequence

from cluster_harness.dashboard_answers import Answered
from cluster_harness.dashboard_tables import Cell, table_of
from cta_group_cli.table import table
from cta_group_demo.figures import mapped, number_text

_LEFT_OUT = ("UUID",)  # too wide for a terminal


def dashboard_text(answered: Iterable[Answered]) -> str:
    """Return the numbers in one line, then each table under its title."""
    panels = list(answered)
    numbers = [it for it in panels if it.panel.kind == "stat"]
    tables = [it for it in panels if it.panel.kind == "table"]
    line = table([it.panel.title for it in numbers], [[number_text(it.number, it.panel.defaults) for it in numbers]])
    return "\n\n".join([line, *(_titled(it) for it in tables)])


def _titled(answered: Answered) -> str:
    shown = table_of(answered)
    if not shown.rows:
        return f"{answered.panel.title}: none"
    kept = [place for place, name in enumerate(shown.columns) if name not in _LEFT_OUT]
    names = [shown.columns[place] for place in kept]
    rows = [_row([row[place] for place in kept], names, answered) for row in shown.rows]
    return f"{answered.panel.title}\n{table(names, rows)}"


def _row(cells: Sequence[Cell], names: Sequence[str], answered: Answered) -> list[str | int]:
    return [_cell(cell, name, answered) for cell, name in zip(cells, names, strict=True)]


def _cell(cell: Cell, name: str, answered: Answered) -> str | int:
    if isinstance(cell, str):
        return cell
    settings = answered.panel.settings_of(name)
    state = mapped(cell, settings) if cell is not None else None
    if cell is None or state or cell != round(cell):
        return str(state["text"]) if state else number_text(cell, settings)
    return round(cell)
