"""Photographs an HTML page by Debian's Chromium, which set-up does not install: few people need it."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from cluster_harness.errors import HarnessError

_TIMEOUT_SECONDS = 120.0
_QUIET = (
    "--headless",
    "--no-sandbox",  # Chromium refuses its sandbox to root; the page is our own and loads nothing
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def photograph(page: str, width: int, height: int, target: Path, *, scale: float = 1.0) -> None:
    """Write a PNG of the page; ``width`` and ``height`` are CSS pixels, each ``scale`` pixels of the picture."""
    program = shutil.which("chromium")
    if program is None:
        raise HarnessError("no chromium on PATH: apt-get install --no-install-recommends chromium fonts-inter")
    with tempfile.TemporaryDirectory() as folder:
        source, picture = Path(folder) / "page.html", Path(folder) / "page.png"
        source.write_text(page)
        where = (f"--user-data-dir={folder}/profile", f"--screenshot={picture}", f"--window-size={width},{height}")
        command = [program, *_QUIET, *where, f"--force-device-scale-factor={scale}", source.as_uri()]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)
        if not picture.exists():
            raise HarnessError(f"chromium made no picture ({done.returncode}):\n{done.stderr[-2000:]}")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
