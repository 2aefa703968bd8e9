"""The small images that every test cluster has: the sandbox of each pod, and busybox for pods of tests."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster_harness.cache import cache_folder, content_key, exclusive
from cluster_harness.errors import HarnessError
from cluster_harness.images import write_archive

PAUSE_IMAGE = "localhost/cta-pause:1"
BUSYBOX_IMAGE = "localhost/cta-busybox:1"
_BUSYBOX = Path("/bin/busybox")


@dataclass(frozen=True, slots=True)
class _OneProgram:
    """An image with one static program in it, at ``place``, and links to it beside it."""

    name: str
    program: Path
    place: str
    config: Mapping[str, Any]
    links: tuple[str, ...] = field(default=())

    def key(self) -> str:
        return content_key(self.program.read_bytes(), self.name, self.place, *self.links, json.dumps(self.config))

    def fill(self, root: Path) -> None:
        (root / "tmp").mkdir()
        target = root / self.place
        target.parent.mkdir(exist_ok=True)
        shutil.copy(self.program, target)
        for link in self.links:
            target.with_name(link).symlink_to(target.name)


def ensure_pause_archive(pause: Path) -> Path:
    """Return an archive of PAUSE_IMAGE, made from the program ``pause``."""
    return _ensure(_OneProgram(PAUSE_IMAGE, pause, "pause", {"Entrypoint": ["/pause"]}))


def ensure_busybox_archive() -> Path:
    """Return an archive of BUSYBOX_IMAGE: a shell and the usual small commands, from Debian's busybox-static."""
    if not _BUSYBOX.exists():
        raise HarnessError(f"{_BUSYBOX} is needed (Debian: busybox-static)")
    listed = subprocess.run([_BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    links = tuple(name for name in listed if name != _BUSYBOX.name)
    config = {"Env": ["PATH=/bin"], "Cmd": ["sh"]}
    return _ensure(_OneProgram(BUSYBOX_IMAGE, _BUSYBOX, "bin/busybox", config, links))


def _ensure(image: _OneProgram) -> Path:
    stem = image.name.rpartition("/")[2].replace(":", "-")
    ready = cache_folder() / "images" / f"{stem}-{image.key()}.tar"
    with exclusive(ready.with_suffix(".lock")), tempfile.TemporaryDirectory() as scratch:
        if not ready.exists():
            image.fill(Path(scratch))
            write_archive(Path(scratch), image.name, ready.with_suffix(".partial"), image.config).rename(ready)
    return ready
