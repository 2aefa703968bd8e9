"""The images that the project's Dockerfile makes, read from their archives as a container runtime would."""

import json
import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from cluster_harness.errors import BuildError
from cluster_harness.project_images import IMAGES, PROJECT, ProjectImage, ensure_images

_TARGETS = [image.target for image in IMAGES]
_LARGEST_MIB = {"plugin": 200, "operator": 340, "vllm-stand-in": 140}
_SITE_PACKAGES = "opt/cta-group/lib/python3.11/site-packages"


@pytest.fixture(scope="module")
def archives() -> dict[str, Path]:
    """Build the images where the sources changed; give the archive of each."""
    return ensure_images()


def _manifest(archive: Path) -> dict[str, Any]:
    return dict(json.loads(_read(archive, "manifest.json"))[0])


def _config(archive: Path) -> dict[str, Any]:
    return dict(json.loads(_read(archive, _manifest(archive)["Config"])))


def _read(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as outer:
        member = outer.extractfile(name)
        assert member is not None
        return member.read()


def _files(archive: Path) -> dict[str, int]:
    """Return the size of every file of an image by its path, upper layers over lower ones."""
    files: dict[str, int] = {}
    with tarfile.open(archive) as outer:
        for layer in _manifest(archive)["Layers"]:
            with tarfile.open(fileobj=outer.extractfile(layer)) as inner:
                files |= {member.name.removeprefix("./"): member.size for member in inner if not member.isdir()}
    return files


@pytest.mark.parametrize("target", _TARGETS)
def test_image_says_what_it_is(archives: dict[str, Path], target: str) -> None:
    """An image has its name, a numeric user, an entry point and the labels that registries show."""
    image = next(image for image in IMAGES if image.target == target)
    config = _config(archives[target])["config"]
    assert _manifest(archives[target])["RepoTags"] == [image.name]
    assert config["User"] == ("0" if target == "plugin" else "65532:65532")
    assert config["Entrypoint"]
    assert config["Labels"]["org.opencontainers.image.title"] == f"cta-group-{target}"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert config["Labels"]["org.opencontainers.image.version"] not in {"", "unknown"}


@pytest.mark.parametrize("target", _TARGETS)
def test_image_is_small(archives: dict[str, Path], target: str) -> None:
    """No image grows unnoticed: its files, uncompressed, stay below a stated size."""
    size_mib = sum(_files(archives[target]).values()) / 2**20
    assert size_mib < _LARGEST_MIB[target]


@pytest.mark.parametrize("target", _TARGETS)
def test_image_has_no_tools_to_build_or_install(archives: dict[str, Path], target: str) -> None:
    """Neither pip nor a compiler is left in an image."""
    names = {PurePosixPath(name).name for name in _files(archives[target])}
    assert names.isdisjoint({"pip", "pip3", "gcc", "cc", "ld", "pyvenv.py"})
    assert not any("/site-packages/pip/" in name for name in _files(archives[target]))


@pytest.mark.parametrize("target", _TARGETS)
def test_image_keeps_nothing_of_the_build_machine(archives: dict[str, Path], target: str) -> None:
    """Secrets of the build, package lists and resolver settings do not reach a layer."""
    files = _files(archives[target])
    assert [name for name in files if name.startswith(("run/secrets/", "var/lib/apt/lists/", "root/.cache/"))] == []
    assert [name for name in ("etc/apt/sources.list", "etc/resolv.conf", "etc/hosts") if files.get(name, 0)] == []
    assert "etc/pip.conf" not in files


@pytest.mark.parametrize("target", ["plugin", "operator"])
def test_image_can_be_scanned(archives: dict[str, Path], target: str) -> None:
    """What dpkg and pip record is there, from which a bill of materials is made."""
    files = _files(archives[target])
    assert files["var/lib/dpkg/status"] > 0
    assert any(name.startswith(f"{_SITE_PACKAGES}/cta_group-") and name.endswith("/METADATA") for name in files)
    assert any(name.startswith(f"{_SITE_PACKAGES}/pydantic-") and name.endswith("/RECORD") for name in files)


@pytest.mark.parametrize("target", ["plugin", "operator"])
def test_image_is_compiled_ahead(archives: dict[str, Path], target: str) -> None:
    """A container with a read-only root starts from compiled files, as it cannot write them itself."""
    files = _files(archives[target])
    sources = [PurePosixPath(name) for name in files if name.startswith(_SITE_PACKAGES) and name.endswith(".py")]
    missing = [path for path in sources if f"{path.parent}/__pycache__/{path.stem}.cpython-311.pyc" not in files]
    assert sources
    assert missing == []


def test_images_share_their_lower_layers(archives: dict[str, Path]) -> None:
    """Debian and Python are stored and pulled once for all of them."""
    lower = {tuple(_config(archives[target])["rootfs"]["diff_ids"][:2]) for target in _TARGETS}
    assert len(lower) == 1


def test_sources_that_change_during_a_build_are_not_taken_for_what_was_built(tmp_path: Path) -> None:
    """An archive is named after its sources, so what was built from others is not kept under that name."""
    source = tmp_path / "source.py"
    source.write_text("first")
    image = ProjectImage("changing", (os.path.relpath(source, PROJECT),))
    before = image.archive()
    image.check_unchanged_since(before)
    source.write_text("second")
    with pytest.raises(BuildError, match="changed while it was built"):
        image.check_unchanged_since(before)


def test_what_python_compiles_meanwhile_is_no_source(tmp_path: Path) -> None:
    """Other processes write and rename files in its caches at any moment: none of them is read, whatever its name."""
    folder = tmp_path / "package"
    caches = folder / "__pycache__"
    caches.mkdir(parents=True)
    (folder / "module.py").write_text("first")
    image = ProjectImage("compiled", (os.path.relpath(folder, PROJECT),))
    before = image.archive()
    (caches / "module.cpython-311.pyc").write_text("compiled")
    (caches / "module.cpython-311.pyc.140717428289248").write_text("about to be renamed")
    image.check_unchanged_since(before)
