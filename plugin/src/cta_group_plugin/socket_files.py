"""Unix sockets as files: which one it is, whether somebody is behind it, and a gRPC channel to it."""

import socket
from pathlib import Path

import grpc.aio

SocketIdentity = tuple[int, int, int]


def socket_identity(path: Path) -> SocketIdentity | None:
    """Return what tells one socket file from the next under the same path; ``None`` when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_ctime_ns)


def is_served(path: Path) -> bool:
    """Tell whether somebody listens at a socket, without waiting for anything."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)  # noqa: FBT003 - the standard library's argument is positional
            probe.connect(str(path))
    except BlockingIOError:
        return True  # its queue is full
    except OSError:  # also without a descriptor left: nobody can be reached then
        return False
    return True


def channel_to(path: Path) -> grpc.aio.Channel:
    """Return a channel with a connection of its own: one that failed a moment ago would make a shared one wait too."""
    options = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
    return grpc.aio.insecure_channel(f"unix://{path}", options=options)
