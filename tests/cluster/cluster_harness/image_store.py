"""Builds images with buildah in a store of the project's own: no daemon, no registry, nothing outside the cache."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_harness.errors import BuildError

_LOG_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class ImageStore:
    """A buildah store below one folder. Every method raises BuildError with the end of buildah's own output."""

    folder: Path

    @property
    def scratch(self) -> Path:
        """The folder for files that live no longer than a build."""
        return self.folder / "tmp"

    def has_image(self, name: str) -> bool:
        """Say whether an image of that name is in the store."""
        return self._call("inspect", "--type", "image", name).returncode == 0

    def import_root(self, archive: Path, name: str) -> None:
        """Make an image of one layer from a tar archive of a root folder."""
        container = self._run("from", "scratch").strip()
        self._run("add", "--quiet", container, str(archive), "/")
        self._run("commit", "--quiet", "--rm", "--disable-compression", container, name)

    def build(
        self,
        context: Path,
        *,
        target: str,
        tag: str,
        build_args: Mapping[str, str],
        secrets: Mapping[str, Path],
    ) -> None:
        """Build one target of the Dockerfile in ``context``; layers that did not change are taken from before."""
        options = ["--isolation", "chroot", "--pull-never", "--network", "host", "--layers", "--target", target]
        for key, value in build_args.items():
            options += ["--build-arg", f"{key}={value}"]
        for key, path in secrets.items():
            options += ["--secret", f"id={key},src={path}"]
        self._run("build", *options, "--tag", tag, str(context))

    def save(self, name: str, archive: Path) -> None:
        """Write an image and its name as an archive that ``ctr images import`` and ``docker load`` read."""
        partial = archive.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        self._run("push", "--quiet", name, f"docker-archive:{partial}:{name}")
        partial.rename(archive)

    def remove_leftovers(self) -> None:
        """Remove what a build left behind that was killed half-way."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self._run("rm", "--all")

    def _run(self, *command: str) -> str:
        done = self._call(*command)
        if done.returncode:
            raise BuildError(f"images: `buildah {command[0]}` failed:\n{done.stderr[-_LOG_CHARACTERS:].strip()}")
        return done.stdout

    def _call(self, *command: str) -> subprocess.CompletedProcess[str]:
        self.scratch.mkdir(parents=True, exist_ok=True)
        # In a mount namespace of its own: whatever a build mounts is gone with its process, also when that is killed.
        argv: Sequence[str] = ("nice", "unshare", "--mount", "buildah", *self._store_options(), *command)
        environment = os.environ | {"TMPDIR": str(self.scratch)}
        return subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)

    def _store_options(self) -> tuple[str, ...]:
        driver = "overlay" if overlay_works(self.folder) else "vfs"
        return (
            "--root",
            f"{self.folder}/{driver}",
            "--runroot",
            f"{self.folder}/run-{driver}",
            "--storage-driver",
            driver,
        )


def overlay_works(folder: Path) -> bool:
    """Say whether the file system of a folder carries overlay mounts; another overlay does not."""
    argv = ["stat", "--file-system", "--format", "%T", str(folder)]
    kind = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    supported = "overlay" in Path("/proc/filesystems").read_text()
    return supported and kind not in {"overlayfs", "nfs", "fuseblk"}
