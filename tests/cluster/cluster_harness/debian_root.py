"""A root file system of Debian 12 for images, made by debootstrap: it takes the place of a public base image.

Like Debian's own slim image it has apt and dpkg and neither manual pages nor translations. It names no package mirror.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from cluster_harness.cache import cache_folder, content_key, exclusive
from cluster_harness.errors import BuildError
from cluster_harness.progress import progress

SUITE = "bookworm"
_RECIPE = 1  # raise it when a change below must reach roots that are cached already
_SOURCES = Path("etc/apt/sources.list")
_UNUSED = (
    "usr/share/info/*",
    "usr/share/locale/*",
    "usr/share/man/*",
    "var/cache/apt/*",
    "var/cache/debconf/*",
    "var/lib/apt/lists/*",
    "var/log/*",
)
_DPKG_EXCLUDES = """\
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/man/*
"""


def debian_root_key() -> str:
    """Return what the root depends on, as a short text; Debian's updates do not change it."""
    return content_key(SUITE, str(_RECIPE), _DPKG_EXCLUDES, *_UNUSED)


def ensure_debian_root() -> Path:
    """Return the root as a tar archive, made now if no earlier run did. Needs root and debootstrap."""
    ready = cache_folder() / "images" / f"debian-{SUITE}-{debian_root_key()}.tar"
    with exclusive(ready.with_suffix(".lock")):
        if not ready.exists():
            _remove_leftovers()
            with progress("making a Debian root for the images"), _scratch_folder() as root:
                _debootstrap(root)
                _trim(root)
                _pack(root, ready)
    return ready


def package_sources() -> str:
    """Return the machine's apt sources of Debian itself for the suite, in sources.list form; empty if it has none."""
    argv = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]
    listed = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    wanted = (SUITE, f"{SUITE}-updates", f"{SUITE}-security")
    entries = {tuple(line.split()) for line in listed.splitlines()}
    lines = [f"deb {' '.join(entry)}" for entry in sorted(entries) if entry[1:] in {(name, "main") for name in wanted}]
    return "".join(f"{line}\n" for line in lines)


def _scratch_prefix() -> str:
    return f"debian-root-{debian_root_key()}-"


def _remove_leftovers() -> None:
    for folder in (cache_folder() / "images").glob(f"{_scratch_prefix()}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _scratch_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=_scratch_prefix(), dir=cache_folder() / "images")


def _debootstrap(root: str) -> None:
    program = shutil.which("debootstrap")
    if program is None:
        raise BuildError("images: debootstrap is needed (Debian: debootstrap)")
    mirrors = [line.split()[1] for line in package_sources().splitlines() if line.split()[2] == SUITE]
    argv = ["nice", "unshare", "--mount", program, "--variant=minbase", SUITE, root, *mirrors[:1]]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"images: debootstrap failed; are you root?\n{(done.stdout + done.stderr)[-2000:].strip()}")


def _trim(root: str) -> None:
    for pattern in _UNUSED:
        for path in Path(root).glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in Path(root).glob("usr/share/doc/*/*"):
        if path.is_symlink() or path.name == "copyright":
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (Path(root) / "etc/dpkg/dpkg.cfg.d/slim").write_text(_DPKG_EXCLUDES)
    (Path(root) / _SOURCES).write_text("")
    (Path(root) / "etc/resolv.conf").unlink(missing_ok=True)
    (Path(root) / "etc/hostname").unlink(missing_ok=True)


def _pack(root: str, ready: Path) -> None:
    partial = ready.with_suffix(".partial")
    argv = ["tar", "--create", "--file", str(partial), "--numeric-owner", "--xattrs", "--directory", root]
    subprocess.run([*argv, "--exclude=./dev/*", "--exclude=./proc/*", "--exclude=./sys/*", "."], check=True)
    partial.rename(ready)
