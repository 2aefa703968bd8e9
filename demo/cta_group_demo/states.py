"""A panel with states over time as inline SVG: one bar a thing, coloured and labelled by its state."""

import html
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby

from cluster_harness.dashboard_answers import Answered, Window, legend
from cta_group_demo.axes import BOTTOM, TOP, Frame, Point, draw_times, unbroken
from cta_group_demo.figures import Settings, colour_named, colour_of, mapped, number_text

_LEFT = 100
_LABEL_PIXELS = 60  # a narrower bar says nothing
_MOST_BAR_PIXELS = 44


def draw_states(answered: Answered, window: Window, width: float, height: float) -> str:
    """Return the drawing; the size is that of the panel's inside."""
    named = [(legend(answer.query, it.labels), it.points) for answer in answered.answers for it in answer.series]
    if not named:
        return '<p class="none">No data</p>'
    frame = Frame(width, height, _LEFT, window)
    row = (height - TOP - BOTTOM) / len(named)
    rows = (
        _row(frame, TOP + number * row, row, name, partial(_bars, frame, points, answered.panel.settings_of(name)))
        for number, (name, points) in enumerate(named)
    )
    return f'<svg width="{width:.0f}" height="{height:.0f}">{"".join([*draw_times(frame), *rows])}</svg>'


def _row(frame: Frame, top: float, height: float, name: str, bars: Callable[[float, float], Iterable[str]]) -> str:
    """Return one row; ``bars`` draws its bars at a top and of a height."""
    bar = min(height * 0.8, _MOST_BAR_PIXELS)
    label = f'<text x="{frame.left - 8}" y="{top + height / 2 + 4:.1f}" text-anchor="end">{html.escape(name)}</text>'
    return label + "".join(bars(top + (height - bar) / 2, bar))


def _bars(frame: Frame, points: tuple[Point, ...], settings: Settings, y: float, height: float) -> Iterator[str]:
    opacity = settings.get("custom", {}).get("fillOpacity", 70) / 100
    for part in unbroken(points, frame.window.step_seconds):
        for value, same in groupby(points[part], key=lambda point: point[1]):
            times = [at for at, _ in same]
            left, right = frame.x(times[0]), frame.x(min(times[-1] + frame.window.step_seconds, frame.window.end))
            state = mapped(value, settings)
            colour = colour_named(state["color"]) if state else colour_of(value, settings)
            place = f'x="{left:.1f}" y="{y:.1f}" width="{right - left:.1f}" height="{height:.1f}"'
            yield f'<rect {place} rx="2" fill="{colour}" fill-opacity="{opacity}"/>'
            if right - left > _LABEL_PIXELS:
                text = state["text"] if state else number_text(value, settings)
                yield f'<text class="state" x="{left + 8:.1f}" y="{y + height / 2 + 4:.1f}">{html.escape(text)}</text>'
