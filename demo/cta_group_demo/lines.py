"""A panel with courses of time as inline SVG: axes, steps, fillings, stacks and a legend."""

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cluster_harness.dashboard_answers import Answered, Window, legend
from cta_group_demo.axes import Frame, Point, draw_levels, draw_times, level_step, unbroken
from cta_group_demo.figures import PALETTE, colour_named

_LEFT = 44
_LEGEND_PIXELS = 22


@dataclass(frozen=True, slots=True)
class Course:
    """One line: its points over its base, which is zero or the line below it in a stack."""

    name: str
    colour: str
    settings: dict[str, Any]
    points: tuple[Point, ...]
    base: tuple[Point, ...]

    @property
    def custom(self) -> dict[str, Any]:
        """The settings of Grafana's time series."""
        return dict(self.settings.get("custom", {}))


def draw_lines(answered: Answered, window: Window, width: float, height: float) -> str:
    """Return the drawing and its legend; the size is that of the panel's inside."""
    courses = list(_courses(answered))
    if not courses:
        return '<p class="none">No data</p>'
    values = [value for course in courses for _, value in course.points]
    defaults = answered.panel.defaults
    highest = max([*values, defaults.get("max", 0.0)]) or 1.0
    step = level_step(highest, whole=all(value == round(value) for value in values) and defaults.get("unit") == "none")
    frame = Frame(width, height - _LEGEND_PIXELS, _LEFT, window, step * math.ceil(highest / step - 1e-9))
    inner = "".join(
        [*draw_levels(frame, step, defaults), *draw_times(frame), *(_line(course, frame) for course in courses)]
    )
    drawing = f'<svg width="{width:.0f}" height="{frame.height:.0f}">{inner}</svg>'
    return drawing + _legend(courses)


def _courses(answered: Answered) -> Iterator[Course]:
    """Yield the lines of all queries; those of a stack lie on each other in the order in which they come."""
    stacks: dict[str, dict[float, float]] = {}
    named = [(legend(answer.query, it.labels), it.points) for answer in answered.answers for it in answer.series]
    for number, (name, points) in enumerate(named):
        settings = _with_custom(answered.panel.settings_of(name))
        stacking = settings["custom"].get("stacking", {"mode": "none"})
        below = stacks.setdefault(stacking["group"], {}) if stacking["mode"] == "normal" else {}
        base = tuple((at, below.get(at, 0.0)) for at, _ in points)
        raised = tuple((at, value + low) for (at, value), (_, low) in zip(points, base, strict=True))
        below.update(raised)
        fixed = settings.get("color", {}).get("fixedColor")
        colour = colour_named(fixed) if fixed else PALETTE[number % len(PALETTE)]
        yield Course(name, colour, settings, raised, base)


def _with_custom(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with an override such as ``custom.fillOpacity`` laid over ``custom``."""
    custom = dict(settings.get("custom", {}))
    for name, value in settings.items():
        if name.startswith("custom."):
            custom[name.removeprefix("custom.")] = value
    return {**settings, "custom": custom}


def _line(course: Course, frame: Frame) -> str:
    custom = course.custom
    parts = []
    for part in unbroken(course.points, frame.window.step_seconds):
        upper, lower = _steps(course.points[part]), _steps(course.base[part])
        if custom.get("fillOpacity"):
            area = _path(frame, [*upper, *reversed(lower)]) + "Z"
            parts.append(f'<path d="{area}" fill="{course.colour}" fill-opacity="{custom["fillOpacity"] / 100}"/>')
        dash = " ".join(map(str, custom.get("lineStyle", {}).get("dash", [])))
        width = custom.get("lineWidth", 1) + 0.5
        shape = f'fill="none" stroke="{course.colour}" stroke-width="{width}" stroke-dasharray="{dash}"'
        parts.append(f'<path d="{_path(frame, upper)}" {shape}/>')
    return "".join(parts)


def _steps(points: Sequence[Point]) -> list[Point]:
    """Return the corners of a line that keeps a value until the next one."""
    corners = list(points[:1])
    for at, value in points[1:]:
        corners += [(at, corners[-1][1]), (at, value)]
    return corners


def _path(frame: Frame, corners: Iterable[Point]) -> str:
    return "M" + " L".join(f"{frame.x(at):.1f} {frame.y(value):.1f}" for at, value in corners)


def _legend(courses: Iterable[Course]) -> str:
    marks = (f'<span><i style="background:{course.colour}"></i>{html.escape(course.name)}</span>' for course in courses)
    return f'<div class="legend">{"".join(marks)}</div>'
