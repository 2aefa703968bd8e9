"""Where times and values lie on a drawing, and the grid behind it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from cluster_harness.dashboard_answers import Window
from cta_group_demo.figures import Settings, number_text

RIGHT, TOP, BOTTOM = 12, 8, 22
"""Pixels around the drawing itself; the room on the left is a Frame's own."""
_TIME_STEPS_SECONDS = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_MINUTE_SECONDS = 60
_TIME_LABEL_PIXELS = 75
_MOST_LEVELS = 6

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Frame:
    """The room of a drawing in pixels, the times that it shows and its highest value."""

    width: float
    height: float
    left: float
    window: Window
    top_value: float = 1.0

    def x(self, at: float) -> float:
        """Return where a time is."""
        share = (at - self.window.start) / self.window.seconds
        return self.left + share * (self.width - self.left - RIGHT)

    def y(self, value: float) -> float:
        """Return where a value is."""
        return self.height - BOTTOM - value / self.top_value * (self.height - TOP - BOTTOM)


def level_step(highest: float, *, whole: bool) -> float:
    """Return a step of 1, 2 or 5 times a power of ten with few levels up to the highest value."""
    size = 10 ** math.floor(math.log10(highest / _MOST_LEVELS))
    step = float(next(size * factor for factor in (1, 2, 5, 10) if highest / (size * factor) <= _MOST_LEVELS))
    return max(1.0, step) if whole else step


def draw_levels(frame: Frame, step: float, settings: Settings) -> Iterator[str]:
    """Yield a line and a number for each step of the values."""
    exact = {key: value for key, value in settings.items() if key != "decimals" or step >= 1}
    for number in range(round(frame.top_value / step) + 1):
        y = frame.y(number * step)
        text = number_text(round(number * step, 6), exact)
        yield f'<line x1="{frame.left}" x2="{frame.width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
        yield f'<text x="{frame.left - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'


def draw_times(frame: Frame) -> Iterator[str]:
    """Yield a line and a time of day (UTC) for each step of the time."""
    most = max(2.0, (frame.width - frame.left) / _TIME_LABEL_PIXELS)
    fitting = (step for step in _TIME_STEPS_SECONDS if frame.window.seconds / step <= most)
    step = next(fitting, _TIME_STEPS_SECONDS[-1])
    shape = "%H:%M:%S" if step % _MINUTE_SECONDS else "%H:%M"
    first = math.ceil(frame.window.start / step) * step
    for at in range(first, int(frame.window.end) + 1, step):
        x = frame.x(at)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{frame.height - BOTTOM}" class="grid"/>'
        if x < frame.width - _TIME_LABEL_PIXELS / 3:  # else the edge would cut it
            text = datetime.fromtimestamp(at, UTC).strftime(shape)
            yield f'<text x="{x:.1f}" y="{frame.height - 5}" text-anchor="middle">{text}</text>'


def unbroken(points: tuple[Point, ...], step_seconds: float) -> Iterator[slice]:
    """Yield the parts of a line between which Prometheus had no value."""
    start = 0
    for place in range(1, len(points) + 1):
        if place == len(points) or points[place][0] - points[place - 1][0] > 1.5 * step_seconds:
            yield slice(start, place)
            start = place
