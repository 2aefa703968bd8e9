"""Writes CDI specifications where the container runtime reads them.

The runtime looks at the folder all the time, so a file is replaced in one step and never half there. It reads names
that end in ``.json`` only; unfinished files have another end.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from cta_group_core.names import CDI_KIND
from cta_group_plugin.errors import CdiUnavailable
from cta_group_plugin.plain_files import read_plain

_UNFINISHED: Final = f".{CDI_KIND.replace('/', '-')}_"
_ABANDONED_SECONDS: Final = 60.0
"""An unfinished file of this age was left by a process that was killed."""
_MODE: Final = 0o644


class CdiFiles:
    """Implements :class:`cta_group_plugin.ports.CdiFolder` on a folder of the node."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # A name of its own: at an upgrade two processes may write the same file.
        self._process = os.urandom(4).hex()

    def keep(self, specifications: Mapping[str, str]) -> None:
        """Write the files that differ. Raises CdiUnavailable naming the file."""
        for name, text in specifications.items():
            path = self._folder / name
            try:
                if _text_of(path) != text:
                    self._replace(path, text)
            except OSError as error:
                raise CdiUnavailable(f"{path}: cannot be written: {error.strerror or error}") from error

    def _replace(self, path: Path, text: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._remove_abandoned()
        unfinished = self._folder / f"{_UNFINISHED}{self._process}.unfinished"
        try:
            unfinished.write_text(text, encoding="utf-8")
            unfinished.chmod(_MODE)
            unfinished.replace(path)
        except OSError:
            with suppress(OSError):
                unfinished.unlink()
            raise

    def _remove_abandoned(self) -> None:
        oldest = time.time() - _ABANDONED_SECONDS
        for path in self._folder.glob(f"{_UNFINISHED}*.unfinished"):
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()


def _text_of(path: Path) -> str | None:
    try:
        return read_plain(path).decode()
    except (OSError, UnicodeDecodeError):
        return None  # whatever is there instead, a specification takes its place if it can
