"""The inside of each kind of panel as HTML: one number, a table, lines and states over time."""

import html
from typing import Any

from cluster_harness.dashboard import DashboardError
from cluster_harness.dashboard_answers import Answered, Window
from cluster_harness.dashboard_tables import Cell, table_of
from cta_group_demo.figures import colour_named, colour_of, mapped, number_text
from cta_group_demo.lines import draw_lines
from cta_group_demo.states import draw_states


def draw_panel(answered: Answered, window: Window, width: float, height: float) -> str:
    """Return the inside of a panel for the room that it has, in pixels."""
    match answered.panel.kind:
        case "stat":
            return _stat(answered)
        case "table":
            return _table(answered)
        case "timeseries":
            return draw_lines(answered, window, width, height)
        case "state-timeline":
            return draw_states(answered, window, width, height)
        case other:
            raise DashboardError(f"panel {answered.panel.title!r}: no drawing for a panel of type {other}")


def _stat(answered: Answered) -> str:
    settings = answered.panel.defaults
    value = answered.number
    return f'<p class="stat" style="color:{colour_of(value, settings)}">{number_text(value, settings)}</p>'


def _table(answered: Answered) -> str:
    table = table_of(answered)
    if not table.rows:
        return '<p class="none">No data</p>'
    settings = [answered.panel.settings_of(name) for name in table.columns]
    numeric = [any(isinstance(cell, float) for cell in table.column(name)) for name in table.columns]
    heads = "".join(
        f'<th class="{_side(is_number)}"{_width(own)}>{html.escape(name)}</th>'
        for name, own, is_number in zip(table.columns, settings, numeric, strict=True)
    )
    rows = "".join(
        f"<tr>{''.join(_cell(*one) for one in zip(row, settings, numeric, strict=True))}</tr>" for row in table.rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(cell: Cell, settings: dict[str, Any], is_number: bool) -> str:  # noqa: FBT001 - a column of the table
    options = settings.get("custom.cellOptions", {})
    if cell is None:
        return f'<td class="{_side(is_number)} faint">{html.escape(str(settings.get("noValue", "")))}</td>'
    if isinstance(cell, str):
        colour = f' style="color:{colour_of(None, settings)}"' if options.get("type") == "color-text" else ""
        return f'<td class="text"{colour}>{html.escape(cell)}</td>'
    if options.get("type") == "gauge":
        return f'<td class="number">{_gauge(cell, settings)}</td>'
    found = mapped(cell, settings)
    text = found["text"] if found else number_text(cell, settings)
    colour = colour_named(found["color"]) if found else colour_of(cell, settings)
    shown = f' style="color:{colour}"' if options.get("type") == "color-text" else ""
    return f'<td class="number"{shown}>{html.escape(text)}</td>'


def _gauge(value: float, settings: dict[str, Any]) -> str:
    low, high = settings["min"], settings["max"]
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    bar = f'<i style="width:{share:.1%};background:{colour_of(value, settings)}"></i>'
    return f'<div class="gauge"><b>{bar}</b><span>{number_text(value, settings)}</span></div>'


def _side(is_number: bool) -> str:  # noqa: FBT001 - as above
    return "number" if is_number else "text"


def _width(settings: dict[str, Any]) -> str:
    return f' style="width:{settings["custom.width"]}px"' if "custom.width" in settings else ""
