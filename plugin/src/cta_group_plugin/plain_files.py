"""Files of the host, read and written only as what they should be.

Others can write to the folders in which they lie. A named pipe there would hold its reader for ever, and the end of the
process with it; a device without end would fill the memory.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Final, TextIO

_MOST_BYTES: Final = 16 << 20
"""kubelet's record of a node full of pods with a thousand ids has less than 1 MiB."""


def read_plain(path: Path) -> bytes:
    """Return what is in a file. Raises OSError, also for one that is no plain file or has more than 16 MiB."""
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "no plain file", str(path))
        found = file.read(_MOST_BYTES + 1)
    if len(found) > _MOST_BYTES:
        raise OSError(errno.EFBIG, f"more than {_MOST_BYTES} bytes", str(path))
    return found


def open_to_write(path: Path, encoding: str = "utf-8") -> TextIO:
    """Open a file that is made or emptied. Raises OSError, also for a named pipe that nobody reads."""
    return open(path, "w", encoding=encoding, opener=_without_waiting)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; who opens a named pipe otherwise waits for its other end."""
    return os.open(path, flags | os.O_NONBLOCK, 0o666)
