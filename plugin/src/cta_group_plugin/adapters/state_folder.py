"""The folder of the host in which this process keeps what must outlive it, and the marks of the host's own life."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from cta_group_core.errors import InvalidText
from cta_group_core.health.evidence import Epoch
from cta_group_core.ids import LARGEST_GPU_NUMBER, GpuUuid, parse_gpu_uuid
from cta_group_plugin.errors import StateUnavailable
from cta_group_plugin.plain_files import open_to_write, read_plain

RECORD: Final = "health.json"
NUMBERS: Final = "gpu-numbers.json"
"""The number of each GPU in short ids, by UUID."""
REPAIRED: Final = "repaired"
"""A person makes this file to say that GPUs were repaired: those that it names, all when it is empty."""


class StateFolder:
    """Implements :class:`cta_group_plugin.health_record.HealthStore` with two files, and keeps the GPUs' numbers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self) -> str | None:
        """Return the record."""
        try:
            return read_plain(self._folder / RECORD).decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StateUnavailable(f"{self._folder / RECORD}: {error}") from error

    def is_kept(self) -> bool:
        """Tell whether the record is still there: somebody may have emptied the folder."""
        return _is_there(self._folder / RECORD)

    def save(self, text: str) -> None:
        """Replace the record."""
        self._write(RECORD, text)

    def load_numbers(self) -> Mapping[GpuUuid, int]:
        """Return the GPUs' numbers, as :class:`cta_group_plugin.id_book.NumberStore` wants them."""
        path = self._folder / NUMBERS
        try:
            return _numbers_in(read_plain(path).decode())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError, InvalidText) as error:
            raise StateUnavailable(f"{path}: {error}") from error

    def keeps_numbers(self) -> bool:
        """Tell whether the GPUs' numbers are still there."""
        return _is_there(self._folder / NUMBERS)

    def save_numbers(self, numbers: Mapping[GpuUuid, int]) -> None:
        """Replace the GPUs' numbers."""
        self._write(NUMBERS, json.dumps(dict(sorted(numbers.items(), key=lambda item: item[1])), indent=1) + "\n")

    def _write(self, name: str, text: str) -> None:
        """Write a new file and put it in the old one's place, so that a crash leaves one of both."""
        unfinished = self._folder / f"{name}.new"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with open_to_write(unfinished) as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._folder / name)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            raise StateUnavailable(f"{self._folder / name}: {error}") from error

    def take_word(self) -> str | None:
        """Return what the file of a person says, and remove the file."""
        word = self._folder / REPAIRED
        try:
            text = read_plain(word).decode(errors="replace")
            word.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StateUnavailable(f"{word}: {error}") from error
        return text.strip()


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except OSError:
        return False
    return True


def _numbers_in(text: str) -> dict[GpuUuid, int]:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise InvalidText("it must be a JSON object of numbers by GPU UUID")
    numbers = {parse_gpu_uuid(uuid): number for uuid, number in document.items()}
    if not all(type(number) is int and 0 <= number <= LARGEST_GPU_NUMBER for number in numbers.values()):
        raise InvalidText(f"each GPU's number must be a whole number from 0 to {LARGEST_GPU_NUMBER}")
    if len(set(numbers.values())) < len(numbers):
        raise InvalidText("two GPUs have the same number")
    return numbers


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
