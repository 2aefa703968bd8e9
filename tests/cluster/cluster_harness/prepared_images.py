"""Images that a node has from its start: imported once into the cache folder, shared by every cluster that names them.

An import of the project's images takes a core ten seconds. So a containerd of its own does it once for each set of
archives. A cluster gets copies of that containerd's two databases and links to the rest, which no containerd changes:
a blob is named by its digest, and the layers of an image only ever lie below the overlay of a container.
"""

import os
import shutil
import tarfile
import tempfile
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from cluster_harness.binaries import NodeBinaries
from cluster_harness.cache import cache_folder, content_key, exclusive
from cluster_harness.image_store import overlay_works
from cluster_harness.importing import import_all
from cluster_harness.node_plan import CONTAINERD_ROOT, PRIVATE_PARENTS, NodePlan
from cluster_harness.progress import progress
from cluster_harness.state_folder import BASE, PREFIX

_SET = "image-set"  # in the state folder: the name of the prepared set that its node uses
_IMAGES = "images"  # in the state folder: the identity of each archive that its node has, one a line
_BEING_MADE = "being-made-"
_KEPT_UNUSED = 2
_OUT_OF_SIGHT = (*PRIVATE_PARENTS, "/run", "/dev", "/proc", "/sys")
_BLOBS = Path("io.containerd.content.v1.content/blobs/sha256")
_LAYERS = Path("io.containerd.snapshotter.v1.overlayfs/snapshots")
_DATABASES = (
    Path("io.containerd.metadata.v1.bolt/meta.db"),
    Path("io.containerd.snapshotter.v1.overlayfs/metadata.db"),
)


def identity(archive: Path) -> str:
    """Return a text that names the images of an OCI or docker archive by their digests."""
    with tarfile.open(archive) as tar:
        for name in ("index.json", "manifest.json"):
            if name in tar.getnames():
                member = tar.extractfile(name)
                return content_key(member.read() if member else b"")
    raise ValueError(f"{archive} is no archive of images: it has neither index.json nor manifest.json")


def place_images(archives: Sequence[Path], binaries: NodeBinaries, plan: NodePlan, folder: Path) -> bool:
    """Give the node of the state folder these images, before its containerd starts; say whether that can be done here.

    It cannot where the cache folder carries no overlay mounts, or lies where the node has folders of its own.
    """
    home = _home()
    if not overlay_works(home) or any(map(home.is_relative_to, _OUT_OF_SIGHT)):
        return False
    identities = sorted(map(identity, archives))
    with exclusive(home / "lock"):
        prepared = home / content_key(str(binaries.containerd), *identities)
        (folder / _SET).write_text(prepared.name)
        if not prepared.exists():
            remove_unused(home, _sets_in_use())
            _prepare(archives, binaries, prepared)
        os.utime(prepared)
        _link(prepared, plan.place_of(CONTAINERD_ROOT, folder))
    for archive in archives:
        note_images(archive, folder)
    return True


def note_images(archive: Path, folder: Path) -> None:
    """Remember that the node of the state folder has the images of the archive."""
    with (folder / _IMAGES).open("a") as note:
        note.write(f"{identity(archive)}\n")


def has_images(archive: Path, folder: Path) -> bool:
    """Say whether the node of the state folder has the images of the archive."""
    note = folder / _IMAGES
    return note.exists() and identity(archive) in note.read_text().splitlines()


def _sets_in_use() -> set[str]:
    used = set()
    for note in BASE.glob(f"{PREFIX}*/{_SET}"):
        with suppress(FileNotFoundError):  # that cluster ended just now
            used.add(note.read_text())
    return used


def _home() -> Path:
    home = cache_folder() / "images" / "prepared"
    home.mkdir(parents=True, exist_ok=True)
    return home


def _prepare(archives: Iterable[Path], binaries: NodeBinaries, prepared: Path) -> None:
    """Import the archives; the folder has its name only when it is complete."""
    with (
        progress("importing images for the nodes of clusters"),
        tempfile.TemporaryDirectory(prefix=_BEING_MADE, dir=prepared.parent) as scratch,
    ):
        root = Path(scratch) / "root"
        import_all(archives, binaries, root)
        root.rename(prepared)


def _link(prepared: Path, root: Path) -> None:
    for database in _DATABASES:
        (root / database).parent.mkdir(parents=True)
        shutil.copyfile(prepared / database, root / database)
    for place in (_BLOBS, _LAYERS):
        (root / place).mkdir(parents=True)
        for entry in (prepared / place).iterdir():
            (root / place / entry.name).symlink_to(entry)


def remove_unused(home: Path, used: Collection[str]) -> None:
    """Remove what a killed process left half-made, and all sets that no cluster has but the newest; under the lock."""
    folders = [path for path in home.iterdir() if path.is_dir()]
    unused = sorted((path for path in folders if path.name not in used), key=lambda path: path.stat().st_mtime)
    half_made = [path for path in unused if path.name.startswith(_BEING_MADE)]
    complete = [path for path in unused if path not in half_made]
    for path in (*half_made, *complete[:-_KEPT_UNUSED]):
        shutil.rmtree(path)
