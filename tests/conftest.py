"""What holds for every test: hypothesis does not judge speed, since the machine may be busy with something else.

Tests run on several workers, most of them waiting for a cluster at any time. What shares a cluster stays on one worker,
and so do the tests of a file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("cta-group", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("cta-group")

_SHARED: Final = ("plain", "cluster", "control_plane")
"""Fixtures that lead to something that takes long to start; the first that a test has is its group's name."""
_SLOWEST_FIRST: Final = ("node", "api", "component")
_HERE: Final = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its group, and begin with those that take long."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=_turn)


def _group(item: pytest.Item) -> str:
    names: Sequence[str] = getattr(item, "fixturenames", ())
    return next((name for name in _SHARED if name in names), str(item.path.relative_to(_HERE)))


def _turn(item: pytest.Item) -> int:
    folder = item.path.relative_to(_HERE).parts[0]
    return _SLOWEST_FIRST.index(folder) if folder in _SLOWEST_FIRST else len(_SLOWEST_FIRST)
