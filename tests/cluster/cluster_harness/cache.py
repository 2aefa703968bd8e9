"""Where built binaries and other slow results are kept between runs: one folder outside every checkout."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_KEY_CHARACTERS = 16


def cache_folder() -> Path:
    """Return the cache folder, made when it is missing.

    It is ``$CTA_GROUP_CACHE`` where that is set, else ``cta-group`` below ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    named = os.environ.get("CTA_GROUP_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(named) if named else base / "cta-group"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def content_key(*parts: str | bytes) -> str:
    """Return a short key that changes when any of the parts changes."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:_KEY_CHARACTERS]


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``; a second process waits until the first lets go or dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
