"""Images that a node of a test cluster has from its start: when that is possible, and what is kept of them."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from cluster_harness.binaries import NodeBinaries
from cluster_harness.node_plan import NodePlan
from cluster_harness.prepared_images import has_images, identity, note_images, place_images, remove_unused

_NONE = NodeBinaries(*[Path("/none")] * 6)


def archive_of(path: Path, **files: str) -> Path:
    """Write a tar archive."""
    with tarfile.open(path, "w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{name}.json")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


def test_an_archive_is_known_by_its_content(tmp_path: Path) -> None:
    """The name of the file does not matter, and neither does what is beside the manifests."""
    one = identity(archive_of(tmp_path / "one.tar", manifest="[1]"))
    assert identity(archive_of(tmp_path / "two.tar", other="{}", manifest="[1]")) == one
    assert identity(archive_of(tmp_path / "three.tar", manifest="[2]")) != one


def test_what_is_no_archive_of_images_is_refused_by_name(tmp_path: Path) -> None:
    """The sentence says which file and what is missing."""
    with pytest.raises(ValueError, match=r"other\.tar is no archive of images: it has neither index\.json nor"):
        identity(archive_of(tmp_path / "other.tar", other="{}"))


def test_a_cache_that_the_node_cannot_see_prepares_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node has a folder of its own there, so its images are imported as they always can be."""
    cache = Path("/dev", "shm", f"cta-group-{os.getpid()}")
    monkeypatch.setenv("CTA_GROUP_CACHE", str(cache))
    try:
        assert not place_images([], _NONE, NodePlan(), tmp_path)
    finally:
        for folder in (cache / "images" / "prepared", cache / "images", cache):
            folder.rmdir()


def test_what_a_node_has_is_not_imported_again(tmp_path: Path) -> None:
    """It is noted by its content, which another archive of that name has not."""
    archive = archive_of(tmp_path / "one.tar", manifest="[1]")
    assert not has_images(archive, tmp_path)
    note_images(archive, tmp_path)
    assert has_images(archive, tmp_path)
    assert not has_images(archive_of(tmp_path / "one.tar", manifest="[2]"), tmp_path)


def test_sets_that_no_cluster_has_go_but_for_the_newest(tmp_path: Path) -> None:
    """What a cluster has stays however old it is; what was left half-made goes however new."""
    for age, name in enumerate(("being-made-x", "newest", "newer", "old", "older", "oldest")):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / "lock").touch()
    remove_unused(tmp_path, {"older"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "newer", "newest", "older"]
