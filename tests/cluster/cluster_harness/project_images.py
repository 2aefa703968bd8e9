"""The project's own images, built from its Dockerfile without a registry and kept in the cache as archives.

``python -m cluster_harness.project_images`` builds them all and prints where they are; a second run takes no time.
"""

import os
import tempfile
import time
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cluster_harness.build_secrets import write_build_secrets
from cluster_harness.cache import cache_folder, content_key, exclusive
from cluster_harness.debian_root import SUITE, debian_root_key, ensure_debian_root
from cluster_harness.errors import BuildError
from cluster_harness.image_store import ImageStore
from cluster_harness.progress import progress

PROJECT = Path(__file__).resolve().parents[3]
_KEPT_ARCHIVES = 3
_PYTHON_PACKAGES = (
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "requirements/build.txt",
    "core/src",
    "plugin/src",
    "operator/src",
    "cli/src",
)


@dataclass(frozen=True, slots=True)
class ProjectImage:
    """A target of the Dockerfile and the files of the project that go into it."""

    target: str
    sources: tuple[str, ...]

    @property
    def name(self) -> str:
        """The image's name, as the chart's values for tests and the demo give it."""
        return f"localhost/cta-group-{self.target}:dev"

    def archive(self) -> Path:
        """Return where the archive of the present sources is, whether or not it was built."""
        files = [path for source in ("Dockerfile", *self.sources) for path in _files(PROJECT / source)]
        parts = [part for path in files for part in (str(path.relative_to(PROJECT)), path.read_bytes())]
        return cache_folder() / "images" / f"{self.target}-{content_key(debian_root_key(), *parts)}.tar"

    def check_unchanged_since(self, archive: Path) -> None:
        """Raise BuildError where the sources are no longer those that ``archive`` is named after."""
        if self.archive() != archive:
            raise BuildError(f"images: the sources of {self.name} changed while it was built: build it again")


IMAGES = (
    ProjectImage("plugin", (*_PYTHON_PACKAGES, "requirements/plugin.txt")),
    ProjectImage("operator", (*_PYTHON_PACKAGES, "requirements/operator.txt")),
    ProjectImage("vllm-stand-in", ("tests/stand_in",)),
)


def ensure_images() -> dict[str, Path]:
    """Return the archive of each image by its target, built now where the sources changed.

    Each archive holds one image under its ``ProjectImage.name``. Raises BuildError in words; a build needs root.
    """
    archives = {image.target: image.archive() for image in IMAGES}
    if not all(path.exists() for path in archives.values()):
        with exclusive(cache_folder() / "images" / "build.lock"):
            _build_missing(archives)
    for path in archives.values():
        os.utime(path)  # not touch(): that would make an empty archive of one that is missing
    return archives


def built_images() -> dict[str, Path]:
    """Return the archive of each image by its target, those alone that are built already from the present sources."""
    return {image.target: path for image in IMAGES if (path := image.archive()).exists()}


def _build_missing(archives: dict[str, Path]) -> None:
    missing = [image for image in IMAGES if not archives[image.target].exists()]
    if missing and os.geteuid():
        raise BuildError("images: only root can build them here (chroot and mounts): run it as root once")
    store = ImageStore(cache_folder() / "images" / "store")
    store.remove_leftovers()
    base = _ensure_base(store)
    with tempfile.TemporaryDirectory(prefix="secrets-", dir=store.scratch) as folder:
        secrets = write_build_secrets(Path(folder), os.environ)
        for image in missing:
            with progress(f"building image {image.name}"):
                build_args = {"BASE_IMAGE": base, "VERSION": _version()}
                store.build(PROJECT, target=image.target, tag=image.name, build_args=build_args, secrets=secrets)
                image.check_unchanged_since(archives[image.target])
                store.save(image.name, archives[image.target])
            _remove_old_archives(image.target)


def _ensure_base(store: ImageStore) -> str:
    name = f"localhost/cta-group-debian:{SUITE}-{debian_root_key()}"
    if not store.has_image(name):
        store.import_root(ensure_debian_root(), name)
    return name


def _version() -> str:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def _files(path: Path) -> Iterable[Path]:
    """List the files at or below a path as .dockerignore lets them through, in a fixed order."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BuildError(f"images: {path} is missing and an image needs it")
    # Python writes what it compiled to files of passing names and renames them, in whatever process comes by.
    found = (file for file in path.rglob("*") if "__pycache__" not in file.parts and file.is_file())
    return sorted(file for file in found if file.suffix not in {".pyc", ".pyo"})


def _remove_old_archives(target: str) -> None:
    archives = sorted((cache_folder() / "images").glob(f"{target}-*.tar"), key=lambda path: path.stat().st_mtime)
    for path in archives[:-_KEPT_ARCHIVES]:
        path.unlink(missing_ok=True)


def main() -> None:
    """Build what is missing and print each image's name, size and archive."""
    started = time.monotonic()
    for target, archive in ensure_images().items():
        size_mib = archive.stat().st_size / 2**20
        print(f"localhost/cta-group-{target}:dev  {size_mib:.0f} MiB  {archive}")
    print(f"images ready after {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
