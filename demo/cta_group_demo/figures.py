"""Numbers and colours as a dashboard's field settings want them. Pure: values and settings in, words out."""

from collections.abc import Mapping
from typing import Any

from cluster_harness.dashboard import DashboardError

Settings = Mapping[str, Any]

COLOURS = {
    "text": "#ccccdc",
    "green": "#73bf69",
    "red": "#f2495c",
    "orange": "#ff9830",
    "yellow": "#fade2a",
    "blue": "#5794f2",
    "purple": "#b877d9",
}
PALETTE = ("#73bf69", "#5794f2", "#f2cc0c", "#ff9830", "#b877d9", "#8ab8ff", "#f2495c", "#96d98d")
"""Colours of series that have none of their own, in turn."""
_SHARE_UNITS = {"percentunit": 100.0, "percent": 1.0}
_SHORT_STEPS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_MOST_WHOLE = 100.0


def number_text(value: float | None, settings: Settings) -> str:
    """Return a number with its unit, or the settings' words for none."""
    if value is None:
        return str(settings.get("noValue", "-"))
    unit = settings.get("unit", "none")
    decimals = settings.get("decimals")
    if unit in _SHARE_UNITS:
        return f"{_plain(value * _SHARE_UNITS[unit], decimals)}%"
    if unit == "s":
        return f"{_plain(value * 1000, decimals)} ms" if 0 < abs(value) < 1 else f"{_plain(value, decimals)} s"
    if unit == "short":
        return _short(value, decimals)
    if unit != "none":
        raise DashboardError(f"unit {unit!r} is not understood")
    return _plain(value, decimals)


def mapped(value: float, settings: Settings) -> Mapping[str, Any] | None:
    """Return the text and the colour that a value mapping gives, None without one."""
    for mapping in settings.get("mappings", []):
        if mapping["type"] != "value":
            raise DashboardError(f"mapping of type {mapping['type']!r} is not understood")
        found = mapping["options"].get(_plain(value, None))
        if found is not None:
            return dict(found)
    return None


def colour_of(value: float | None, settings: Settings) -> str:
    """Return the colour of a value: a fixed one, or that of the highest threshold it reaches."""
    fixed = settings.get("color", {})
    if fixed.get("mode") == "fixed":
        return colour_named(fixed["fixedColor"])
    reached = "text"
    for step in settings.get("thresholds", {}).get("steps", []):
        if step["value"] is None or (value is not None and value >= step["value"]):
            reached = step["color"]
    return colour_named(reached)


def colour_named(name: str) -> str:
    """Return Grafana's colour of that name; one that is written as #rrggbb stays."""
    if name.startswith("#"):
        return name
    if name not in COLOURS:
        raise DashboardError(f"colour {name!r} is not known; there are {', '.join(COLOURS)}")
    return COLOURS[name]


def _plain(value: float, decimals: int | None) -> str:
    if decimals is None:
        decimals = 0 if value == round(value) or abs(value) >= _MOST_WHOLE else 2
    return f"{value:.{decimals}f}"


def _short(value: float, decimals: int | None) -> str:
    for size, letter in _SHORT_STEPS:
        if abs(value) >= size:
            return f"{_plain(value / size, 1 if decimals is None else decimals)}{letter}"
    return _plain(value, decimals)
