"""The files of vLLM that make its argument parser, out of its source distributions, kept in the cache folder.

pip fetches a distribution from whichever index it is set up for and checks the SHA-256 below. It unpacks it and then
asks its build for metadata, which fails without torch; with ``--no-clean`` what was unpacked stays, and that is all
that is wanted.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cluster_harness.cache import cache_folder, content_key, exclusive

_WANTED = ("config", "engine/arg_utils.py", "entrypoints/*/cli_args.py", "entrypoints/constants.py", "envs.py")
_WANTED_UTILITIES = ("utils/__init__.py", "utils/argparse_utils.py", "utils/hashing.py")
_LAYOUT = "1"
"""Changed with what is kept of a distribution."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of vLLM, and the module of it that defines ``make_arg_parser``."""

    version: str
    sha256: str
    """Of the source distribution."""
    parser_module: str


RELEASES = (
    Release(
        version="0.25.0",
        sha256="7e04e2b37164de8c4012f27f75af6c4768039b32610865e9b6fb8c49c34a84aa",
        parser_module="vllm.entrypoints.openai.cli_args",
    ),
    Release(
        version="0.33.0",
        sha256="f4c33c2503d52bb411146afa9618a4f48bed68912f617e6803ac8d76e4c74112",
        parser_module="vllm.entrypoints.common.cli_args",
    ),
)

OLDER = (
    Release(
        version="0.13.0",
        sha256="4ad43db45fef37114b550d03a4f423fb3fa3a31d8bc09ee810ef8b9cdcd4b5fe",
        parser_module="vllm.entrypoints.openai.cli_args",
    ),
    Release(
        version="0.14.0",
        sha256="ed86c6a9d22fbfd059648794493cad88444c71688f3ff6efcb26c5ca353f0e5d",
        parser_module="vllm.entrypoints.openai.cli_args",
    ),
)
"""The last release without an automatic ``--max-model-len``, and the first one with it."""


def parser_folder(release: Release) -> Path:
    """Return the folder that holds ``vllm/``, fetched when it is missing."""
    base = cache_folder() / "vllm-parser"
    kept = base / f"{release.version}-{content_key(release.sha256, _LAYOUT)}"
    with exclusive(base / "lock"):
        if not kept.exists():
            _fetch(release, kept)
    return kept


def _fetch(release: Release, kept: Path) -> None:
    with tempfile.TemporaryDirectory(dir=kept.parent) as name:
        scratch = Path(name)
        unpacked = _unpacked(release, scratch)
        chosen = scratch / "chosen"
        for pattern in (*_WANTED, *_WANTED_UTILITIES):
            for source in sorted((unpacked / "vllm").glob(pattern)):
                _copy(source, chosen / source.relative_to(unpacked))
        chosen.rename(kept)


def _unpacked(release: Release, scratch: Path) -> Path:
    wanted = scratch / "requirement.txt"
    wanted.write_text(f"vllm=={release.version} --hash=sha256:{release.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
    ended = subprocess.run(
        [*command, "--no-clean", "--require-hashes", "--requirement", str(wanted), "--dest", str(scratch)],
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = next(scratch.glob("pip-*/vllm_*/vllm"), None)
    if found is None:
        raise RuntimeError(f"vLLM {release.version} was not fetched:\n{ended.stdout}\n{ended.stderr}")
    return found.parent


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


def main() -> None:
    """Fetch what is missing."""
    for release in (*RELEASES, *OLDER):
        parser_folder(release)


if __name__ == "__main__":
    main()
