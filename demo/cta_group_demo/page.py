"""A whole dashboard as one HTML page, each panel where the dashboard's grid has it."""

import html
from collections.abc import Sequence
from pathlib import Path

from cluster_harness.dashboard import GRID_COLUMNS, Dashboard, Place
from cluster_harness.dashboard_answers import Answered, Window
from cta_group_demo.panels import draw_panel

WIDTH = 1400
"""Pixels of the page."""
_MARGIN, _GAP, _CELL = 16, 8, 30  # Grafana's
_HEADER, _FOOTER = 52, 40  # as in page.css
_TITLE, _INSIDE_MARGINS = 34, 18
_STYLE = Path(__file__).with_name("page.css")


def draw_page(dashboard: Dashboard, answered: Sequence[Answered], window: Window, origin: str) -> tuple[str, int]:
    """Return the page and its height in pixels; ``origin`` says below it where the values come from."""
    rows = max(panel.place.y + panel.place.h for panel in dashboard.panels)
    grid_height = rows * (_CELL + _GAP)
    panels = "".join(_section(one, window) for one in answered)
    minutes = max(1, round(window.seconds / 60))
    page = (
        f"<!doctype html><meta charset=utf-8><style>{_STYLE.read_text()}</style>"
        f"<header>{html.escape(dashboard.title)}<small>last {minutes} min</small></header>"
        f'<main style="height:{grid_height}px">{panels}</main><footer>{html.escape(origin)}</footer>'
    )
    return page, _HEADER + grid_height + _FOOTER


def _section(answered: Answered, window: Window) -> str:
    x, y, width, height = _pixels(answered.panel.place)
    inside = draw_panel(answered, window, width - _INSIDE_MARGINS, height - _TITLE)
    place = f"left:{x:.0f}px;top:{y:.0f}px;width:{width:.0f}px;height:{height:.0f}px"
    title = html.escape(answered.panel.title)
    return f'<section style="{place}"><h2>{title}</h2><div class="inside">{inside}</div></section>'


def _pixels(place: Place) -> tuple[float, float, float, float]:
    """Return left, top, width and height of a panel."""
    column = (WIDTH - 2 * _MARGIN + _GAP) / GRID_COLUMNS
    row = _CELL + _GAP
    return _MARGIN + place.x * column, place.y * row, place.w * column - _GAP, place.h * row - _GAP
