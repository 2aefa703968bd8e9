"""What the tests on a real GPU measured, written down for whoever compares."""

import json
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).parents[2] / "build" / "e2e-gpu.json"


class Figures:
    """Measured values by test, in the order in which they came. Times in seconds, memory in MiB."""

    def __init__(self) -> None:
        self._told: dict[str, dict[str, object]] = {}

    def note(self, about: str, **values: object) -> None:
        """Write down values about one thing; floats with three digits after the point."""
        self._told.setdefault(about, {}).update({name: _rounded(value) for name, value in values.items()})

    def write(self, file: Path = FILE) -> None:
        """Write all of them."""
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(self._told, indent=2) + "\n", encoding="utf-8")


def _rounded(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value
