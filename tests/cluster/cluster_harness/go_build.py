"""Builds commands of Go modules into the cache, from a committed go.mod and go.sum, saying how far it is."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cluster_harness.cache import cache_folder, content_key, exclusive
from cluster_harness.errors import BuildError
from cluster_harness.progress import progress

MODULES = Path(__file__).resolve().parent.parent / "modules"
_GO_FLAGS = "-buildvcs=false -trimpath -mod=readonly"


@dataclass(frozen=True, slots=True)
class GoModule:
    """A module folder below ``modules/`` and the commands to build from it.

    ``commands`` are package paths; a binary is named by the last part of its path that is no version suffix,
    or by ``renames``.
    """

    name: str
    commands: tuple[str, ...]
    ldflags: str = "-s -w"
    renames: tuple[tuple[str, str], ...] = ()

    @property
    def source(self) -> Path:
        """The folder that holds go.mod and go.sum."""
        return MODULES / self.name

    def key(self) -> str:
        """Return what the binaries depend on, as a short text."""
        sums = [(self.source / name).read_bytes() for name in ("go.mod", "go.sum")]
        return content_key(*sums, _GO_FLAGS, self.ldflags, *self.commands)

    def binary_name(self, command: str) -> str:
        """Return the file name of the binary that is built from the package path ``command``."""
        return dict(self.renames).get(command, command.rsplit("/", 1)[-1])


def ensure_module(module: GoModule) -> Path:
    """Return the folder with the module's binaries, built now if no earlier run did.

    Two processes never build the same module twice: the second waits. A folder that exists is complete.
    """
    ready = cache_folder() / "bin" / f"{module.name}-{module.key()}"
    with exclusive(ready.with_suffix(".lock")):
        if not ready.is_dir():
            partial = ready.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            for command in module.commands:
                _build(module, command, partial / module.binary_name(command))
            partial.rename(ready)
    return ready


def _build(module: GoModule, command: str, target: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise BuildError(f"{target.name}: Go is needed to build it and is not on PATH; install Go 1.26 or newer")
    argv = [go, "build", "-ldflags", module.ldflags, "-o", str(target), command]
    environment = os.environ | {"GOFLAGS": _GO_FLAGS, "GOWORK": "off"}
    with progress(f"building {target.name} ({module.name})"):
        done = subprocess.run(
            ["nice", *argv], cwd=module.source, env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise BuildError(f"{target.name}: `{' '.join(argv[1:])}` failed in {module.source}:\n{_reason(done.stderr)}")


def _reason(stderr: str) -> str:
    if "requires go >=" in stderr or "invalid go version" in stderr or "unknown directive" in stderr:
        return f"{stderr.strip()}\nThe installed Go is too old: install Go 1.26 or newer"
    return stderr.strip()
