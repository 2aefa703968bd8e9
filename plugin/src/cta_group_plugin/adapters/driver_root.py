"""A driver that lies under a folder of the host: where its programs and its libraries are in there.

It is only read. Drivers are laid out in many ways, and some folders hold a whole C library beside the driver's own.
"""

import ctypes
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LIBRARY: Final = "libcuda.so.1"
_C_LIBRARY: Final = "libc.so.6"
_NVML: Final = "libnvidia-ml.so.1"
_VERSION_FILE: Final = Path("/proc/driver/nvidia/version")
_OURS: Final = ("libcuda.so*", "libnvidia-*.so*")

# Packages of NVIDIA and of distributions, the driver container of the GPU operator, Talos, GKE's installer.
_PROGRAM_FOLDERS: Final = ("usr/bin", "usr/local/bin", "bin", "usr/local/nvidia/bin", "opt/bin")
_LIBRARY_FOLDERS: Final = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib",
    "lib64",
    "lib",
    "usr/local/nvidia/lib64",
    "usr/local/nvidia/lib",
    "usr/local/glibc/usr/lib",
)


def preload(root: Path) -> None:
    """Load NVIDIA's management library out of ``root``, so that its binding finds it there by its bare name.

    It needs nothing but the C library. Where it is in no place of ours the binding says that there is no driver.
    """
    for name in _LIBRARY_FOLDERS:
        with suppress(OSError):
            ctypes.CDLL(str(root / name / _NVML), mode=ctypes.RTLD_GLOBAL)
            return


def driver_words() -> str:
    """Return which driver is loaded, for messages."""
    try:
        found = re.search(r"\b[0-9]+\.[0-9]+(\.[0-9]+)?\b", _VERSION_FILE.read_text(encoding="ascii"))
    except OSError:
        found = None
    return f"driver {found[0]}" if found else "driver of unknown version"


@dataclass(frozen=True, slots=True)
class DriverRoot:
    """The folder as this process sees it."""

    folder: Path
    links: Path
    """A folder of ours, for links to the driver's libraries where they cannot be used from where they lie."""

    def program_folders(self) -> list[Path]:
        """Return the places of programs, in the order in which they are looked for."""
        return [self.folder / name for name in _PROGRAM_FOLDERS]

    def library_folders(self) -> list[Path]:
        """Return the folders that a program of the driver needs on its library path. Raises OSError.

        A folder with a C library is replaced by links to the driver's libraries in it: another C library than the one
        that a program was started with ends it at once.
        """
        found = [folder for name in _LIBRARY_FOLDERS if ((folder := self.folder / name) / _LIBRARY).exists()]
        return [self._linked(folder) if (folder / _C_LIBRARY).exists() else folder for folder in found]

    def _linked(self, folder: Path) -> Path:
        self.links.mkdir(parents=True, exist_ok=True)
        for library in _libraries(folder):
            link = self.links / library.name
            if not link.is_symlink() or link.readlink() != library:
                link.unlink(missing_ok=True)
                link.symlink_to(library)
        return self.links


def _libraries(folder: Path) -> Iterable[Path]:
    for pattern in _OURS:
        yield from folder.glob(pattern)
