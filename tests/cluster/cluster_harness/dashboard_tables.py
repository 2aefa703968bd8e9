"""Tables of a dashboard: answers joined, named and sorted by the panel's transformations, as Grafana does it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cluster_harness.dashboard import DashboardError, Panel
from cluster_harness.dashboard_answers import Answer, Answered

Cell = str | float | None
Row = dict[str, Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns and rows of cells; None is a cell without a value."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def column(self, name: str) -> list[Cell]:
        """Return the cells of one column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]


def table_of(answered: Answered) -> Table:
    """Return the table that the panel shows."""
    panel = answered.panel
    many = len(answered.answers) > 1
    frames = [_frame(answer, f"Value #{answer.query.ref}" if many else "Value") for answer in answered.answers]
    rows, names = _joined(panel, frames), _columns(frames)
    for transformation in panel.transformations:
        if transformation["id"] == "organize":
            rows, names = _organized(rows, names, transformation["options"])
    return Table(tuple(names), tuple(tuple(row.get(name) for name in names) for row in _sorted(panel, rows)))


def _frame(answer: Answer, value_name: str) -> list[Row]:
    """Return a row of labels and a value for each sample."""
    return [{**{k: v for k, v in it.labels.items() if k != "__name__"}, value_name: it.value} for it in answer.samples]


def _joined(panel: Panel, frames: list[list[Row]]) -> list[Row]:
    kinds = [it["id"] for it in panel.transformations]
    unknown = set(kinds) - {"merge", "organize"}
    if unknown:
        raise DashboardError(f"panel {panel.title!r}: transformation {', '.join(unknown)} is not understood")
    if len(frames) == 1:
        return frames[0]
    if "merge" not in kinds:
        raise DashboardError(f"panel {panel.title!r}: several queries in a table need the transformation merge")
    return _merged(row for frame in frames for row in frame)


def _merged(rows: Iterable[Row]) -> list[Row]:
    """Join rows with the same labels."""
    found: dict[tuple[tuple[str, Cell], ...], Row] = {}
    for row in rows:
        labels = tuple(sorted((name, cell) for name, cell in row.items() if not name.startswith("Value")))
        found.setdefault(labels, {}).update(row)
    return list(found.values())


def _columns(frames: list[list[Row]]) -> list[str]:
    """Return the names of all columns, labels before values, in the order in which they are met."""
    met = list(dict.fromkeys(name for frame in frames for row in frame for name in row))
    return [it for it in met if not it.startswith("Value")] + [it for it in met if it.startswith("Value")]


def _organized(rows: list[Row], names: list[str], options: Mapping[str, Any]) -> tuple[list[Row], list[str]]:
    order: Mapping[str, int] = options.get("indexByName", {})
    excluded: Mapping[str, bool] = options.get("excludeByName", {})
    new_name: Mapping[str, str] = options.get("renameByName", {})
    kept = [name for name in sorted(names, key=lambda it: order.get(it, len(order))) if not excluded.get(name)]
    renamed = [{new_name.get(name) or name: row.get(name) for name in kept} for row in rows]
    return renamed, [new_name.get(name) or name for name in kept]


def _sorted(panel: Panel, rows: list[Row]) -> list[Row]:
    """Sort by the columns that the panel names, the first one first."""
    for rule in reversed(panel.options.get("sortBy", [])):
        name = rule["displayName"]
        rows = sorted(rows, key=lambda row: _order(row.get(name)), reverse=bool(rule.get("desc")))
    return rows


def _order(cell: Cell) -> tuple[bool, float, str]:
    """Order cells: none first, numbers and digits by their value, then text."""
    if cell is None:
        return False, 0.0, ""
    if isinstance(cell, float) or cell.isdigit():
        return True, float(cell), ""
    return True, float("inf"), cell
