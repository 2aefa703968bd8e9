"""What is installed, pinned and copied into images agrees across the files that say so."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from cluster_harness.project_images import IMAGES

ROOT = Path(__file__).resolve().parents[2]
# kopf imports each of these that it finds, and then holds credentials and connections of every one.
_OTHER_KUBERNETES_CLIENTS = {"kubernetes-asyncio", "kr8s", "lightkube", "pykube-ng", "pykorm"}


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _scripts() -> dict[str, str]:
    return dict(_project()["project"]["scripts"])


def _runtime_requirements(*extras: str) -> list[Requirement]:
    project = _project()["project"]
    named = [text for extra in extras for text in project["optional-dependencies"][extra]]
    return [Requirement(text) for text in [*project["dependencies"], *named]]


def _pins(name: str) -> dict[str, Version]:
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    pins = (re.match(r"([A-Za-z0-9._-]+)==([^ ;\\]+)", line) for line in lines)
    return {canonicalize_name(pin[1]): Version(pin[2]) for pin in pins if pin}


def _dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text().replace("\\\n", " ")


def _copied_from_context() -> set[str]:
    copies = [line.split()[1:-1] for line in _dockerfile().splitlines() if line.startswith("COPY ")]
    return {source for copy in copies if not copy[0].startswith("--from") for source in copy}


def test_debian_packages_are_sorted_and_unique() -> None:
    """The list of Debian packages has one place for each name."""
    lines = (ROOT / "scripts/apt-packages.txt").read_text().splitlines()
    names = [line for line in lines if line and not line.startswith("#")]
    assert names == sorted(set(names))


@pytest.mark.parametrize(
    ("pinned", "extras"),
    [
        ("constraints.txt", ("plugin", "operator", "cli")),
        ("plugin.txt", ("plugin",)),
        ("operator.txt", ("operator",)),
    ],
)
def test_pins_cover_the_declared_dependencies(pinned: str, extras: tuple[str, ...]) -> None:
    """Each dependency of pyproject.toml is pinned at a version that it allows; scripts/lock makes it so."""
    pins = _pins(pinned)
    wrong = {str(need) for need in _runtime_requirements(*extras) if not _satisfied(need, pins)}
    assert wrong == set()


def _satisfied(need: Requirement, pins: dict[str, Version]) -> bool:
    version = pins.get(canonicalize_name(need.name))
    return version is not None and need.specifier.contains(version)


@pytest.mark.parametrize("image", ["plugin.txt", "operator.txt"])
def test_images_get_the_versions_that_are_tested(image: str) -> None:
    """An image carries the same version of a package as the virtual environment in which the tests run."""
    tested = _pins("constraints.txt")
    assert {name: version for name, version in _pins(image).items() if tested.get(name) != version} == {}


@pytest.mark.parametrize("image", ["build.txt", "plugin.txt", "operator.txt"])
def test_image_requirements_carry_hashes(image: str) -> None:
    """Whatever index a build reaches, pip takes only files whose hash was committed."""
    requirements = (ROOT / "requirements" / image).read_text().replace("\\\n", " ").splitlines()
    pinned = [line for line in requirements if "==" in line]
    assert pinned
    assert [line for line in pinned if "--hash=sha256:" not in line] == []


def test_each_image_has_only_the_clients_it_needs() -> None:
    """The operator image carries one Kubernetes client library, the plugin image none and no kopf."""
    operator, plugin = set(_pins("operator.txt")), set(_pins("plugin.txt"))
    assert "kubernetes" in operator
    assert operator.isdisjoint(_OTHER_KUBERNETES_CLIENTS | {"nvidia-ml-py", "grpcio"})
    assert plugin.isdisjoint(_OTHER_KUBERNETES_CLIENTS | {"kubernetes", "kopf"})


def test_base_image_is_pinned_to_a_day() -> None:
    """The default base is one day's Debian, and no stage starts from anything else."""
    text = _dockerfile()
    assert re.search(r"^ARG BASE_IMAGE=debian:bookworm-\d{8}-slim$", text, re.MULTILINE)
    stages = re.findall(r"^FROM (\S+) AS (\S+)$", text, re.MULTILINE)
    assert len(stages) == len(re.findall(r"^FROM ", text, re.MULTILINE))
    assert {base for base, _ in stages} - {name for _, name in stages} == {"${BASE_IMAGE}"}


def test_dockerfile_has_a_target_for_each_image() -> None:
    """Each image that tests and the demo use is a target, and says by number whom it runs as."""
    stages = re.split(r"^FROM ", _dockerfile(), flags=re.MULTILINE)
    users = {stage.split()[2]: re.findall(r"^USER (\S+)$", stage, re.MULTILINE) for stage in stages[1:]}
    assert {image.target: users.get(image.target) for image in IMAGES} == {
        "plugin": ["0"],
        "operator": ["65532:65532"],
        "vllm-stand-in": ["65532:65532"],
    }


def test_a_changed_source_makes_a_new_image() -> None:
    """Each file that the Dockerfile copies is part of an image's key; otherwise tests would run an old image."""
    keyed = {source for image in IMAGES for source in image.sources}
    assert _copied_from_context() - keyed == set()


def test_build_context_has_what_the_dockerfile_copies() -> None:
    """The allow list of .dockerignore lets every copied file through."""
    allowed = {
        line.removeprefix("!").rstrip("/")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = [Path(source) for source in _copied_from_context()]
    unseen = [path for path in copied if not allowed & {str(part) for part in (path, *path.parents)}]
    assert copied
    assert unseen == []


@pytest.mark.parametrize("name", sorted(_scripts()))
def test_console_script_answers_help(name: str) -> None:
    """Each command of the distribution is installed and explains itself."""
    script = Path(sys.executable).with_name(name)
    done = subprocess.run([script, "--help"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage" in done.stdout.lower()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("helm", "version", "--short"), "v4.3.1"),
        (("helm3", "version", "--short"), "v3.17.3"),
        (("kubectl", "version", "--client"), "v1.37.1"),
    ],
)
def test_tools_have_the_promised_versions(command: tuple[str, ...], expected: str) -> None:
    """Set-up put the stated versions of helm and kubectl beside the interpreter."""
    program = Path(sys.executable).with_name(command[0])
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=True, timeout=60)
    assert expected in done.stdout
