"""What a unix socket is like, in words that help: missing, denied, or nobody behind it."""

import errno
import socket
import stat
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

_DENIED_WORDS: Final = "ermission denied"
SELINUX_HINT: Final = (
    "on a host with SELinux a plain container may not use it: give the pod another type (plugin.seLinuxOptions, "
    "mps.seLinuxOptions: {type: spc_t})"
)


class SocketState(Enum):
    """What became of an attempt to connect."""

    ANSWERS = "answers"
    MISSING = "missing"
    DENIED = "denied"
    SILENT = "silent"
    """It is there, and nobody takes the connection."""


@dataclass(frozen=True, slots=True)
class SocketLook:
    """One socket at one moment."""

    path: Path
    state: SocketState
    words: str = ""
    """Why it cannot be used; empty when it can."""


def look_at(path: Path, *, timeout_seconds: float = 2.0) -> SocketLook:
    """Connect to a socket and say what is wrong with it."""
    try:
        if not stat.S_ISSOCK(path.stat().st_mode):
            return SocketLook(path, SocketState.SILENT, f"{path} is there and is no socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_seconds)
            connection.connect(str(path))
    except FileNotFoundError:
        return SocketLook(path, SocketState.MISSING, f"there is no {path}")
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            return SocketLook(path, SocketState.DENIED, f"{path}: permission denied; {SELINUX_HINT}")
        return SocketLook(path, SocketState.SILENT, f"nobody answers at {path}: {error.strerror or error}")
    return SocketLook(path, SocketState.ANSWERS)


def with_hint(told: str) -> str:
    """Return what gRPC told about a socket, with the usual cause where it was denied."""
    return f"{told}; {SELINUX_HINT}" if _DENIED_WORDS in told else told
