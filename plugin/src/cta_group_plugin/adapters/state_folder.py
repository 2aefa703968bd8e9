"""The folder of the host in which this process keeps what must outlive it, and the marks of the host's own life."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from cta_group_core.health.evidence import Epoch
from cta_group_plugin.errors import StateUnavailable

RECORD: Final = "health.json"
REPAIRED: Final = "repaired"
"""A person makes this file to say that GPUs were repaired: those that it names, all when it is empty."""


class StateFolder:
    """Implements :class:`cta_group_plugin.health_record.HealthStore` with two files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self) -> str | None:
        """Return the record."""
        try:
            return (self._folder / RECORD).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StateUnavailable(f"{self._folder / RECORD}: {error}") from error

    def save(self, text: str) -> None:
        """Write a new file and put it in the old one's place, so that a crash leaves one of both."""
        unfinished = self._folder / f"{RECORD}.new"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with unfinished.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._folder / RECORD)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            raise StateUnavailable(f"{self._folder / RECORD}: {error}") from error

    def take_word(self) -> str | None:
        """Return what the file of a person says, and remove the file."""
        word = self._folder / REPAIRED
        try:
            text = word.read_text(encoding="utf-8", errors="replace")
            word.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StateUnavailable(f"{word}: {error}") from error
        return text.strip()


def host_marks(proc: Path = Path("/proc"), sysfs: Path = Path("/sys")) -> Epoch:
    """Return what changes when the node or its driver is started anew."""
    return Epoch(boot_id=_text(proc / "sys/kernel/random/boot_id"), driver_load=_driver_load(sysfs / "module/nvidia"))


def _driver_load(module: Path) -> str | None:
    """Return version and inode of the loaded module: a module that is loaded again gets another inode.

    The times of files in sysfs tell nothing: they are those of the first look at them.
    """
    version = _text(module / "version")
    try:
        return f"{version} {module.stat().st_ino}"
    except OSError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip() or None
    except OSError:
        return None
