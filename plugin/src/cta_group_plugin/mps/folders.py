"""Where the daemon of a GPU has its files on the host."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cta_group_core.errors import InvalidText
from cta_group_core.ids import GpuUuid, parse_gpu_uuid
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.plain_files import open_to_write

_PASSABLE = 0o755
_OURS = 0o750


@dataclass(frozen=True, slots=True)
class MpsFolders:
    """Folders of one GPU's daemon. They outlive daemons: containers mount the pipe folder, so it is never made anew."""

    gpu: GpuUuid
    pipe: Path
    """Sockets that clients of any user id connect to; NVIDIA's daemon gives its sockets their modes itself."""
    log: Path
    """Logs of the daemon and of its server."""

    @classmethod
    def under(cls, mps_root: Path, gpu: GpuUuid) -> Self:
        """Return the folders of ``gpu``."""
        return cls(gpu=gpu, pipe=mps_root / gpu / "pipe", log=mps_root / gpu / "log")

    @property
    def output(self) -> Path:
        """What the daemon printed since its last start."""
        return self.log / "daemon.out"

    @property
    def record(self) -> Path:
        """Which process the daemon is."""
        return self.pipe.parent / "daemon.json"

    @property
    def found_mode(self) -> Path:
        """The compute mode that the GPU had before it was changed; absent when it was not."""
        return self.pipe.parent / "found-compute-mode"

    def make(self) -> None:
        """Make what is missing, passable for every user id whatever our umask. Raises MpsUnavailable."""
        try:
            for folder, mode in ((self.pipe.parent, _PASSABLE), (self.pipe, _PASSABLE), (self.log, _OURS)):
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(mode)
        except OSError as error:
            raise MpsUnavailable(f"GPU {self.gpu}: the folders of its MPS daemon cannot be made: {error}") from error

    def write(self, file: Path, text: str) -> None:
        """Replace one of the files whole: a reader sees the old text or the new one. Raises MpsUnavailable."""
        unfinished = file.with_name(f".{file.name}")
        try:
            with open_to_write(unfinished, "ascii") as made:
                made.write(text)
            unfinished.replace(file)
        except OSError as error:
            raise MpsUnavailable(f"GPU {self.gpu}: {file} cannot be written: {error}") from error

    def open_output(self) -> int:
        """Return a descriptor of the emptied output file, not inherited. Raises MpsUnavailable.

        With O_APPEND the file can be cut while the daemon writes.
        """
        try:
            return os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NONBLOCK, 0o640)
        except OSError as error:
            raise MpsUnavailable(f"GPU {self.gpu}: its MPS daemon's output cannot be kept: {error}") from error

    def closed_to_clients(self) -> str:
        """Return what keeps a client of another user id out, in words; empty when nothing does."""
        for path, needed in [(self.pipe.parent, 0o005), (self.pipe, 0o005), *self._sockets()]:
            try:
                mode = path.stat().st_mode
            except OSError as error:
                return f"{path} cannot be reached: {error.strerror}"
            if mode & needed != needed:
                return f"{path} has mode {stat.S_IMODE(mode):04o} and shuts out clients that do not run as root"
        return ""

    def _sockets(self) -> list[tuple[Path, int]]:
        return [(path, 0o006) for path in self.pipe.glob("*") if path.is_socket() and path.name in _CLIENT_SOCKETS]


_CLIENT_SOCKETS = frozenset({"control", "simulated.sock"})
"""What clients connect to. NVIDIA's ``control_privileged`` beside it is root's alone (seen on R580)."""


def gpus_with_folders(mps_root: Path) -> list[GpuUuid]:
    """Return the GPUs for which a daemon was started some time, now or by an earlier supervisor."""
    found: list[GpuUuid] = []
    for pipe in sorted(mps_root.glob("GPU-*/pipe")):
        try:
            found.append(parse_gpu_uuid(pipe.parent.name))
        except InvalidText:
            continue  # not made by us
    return found
