"""cert-manager's published kinds, out of its Go module, which holds their definitions beside its sources.

Its programs cannot be built from that module: since 1.12 each is a module of its own that only a checkout can build. So
tests give the API server these kinds, and play cert-manager by writing what its documents say that it writes.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from cluster_harness.cache import cache_folder
from cluster_harness.errors import BuildError

CERT_MANAGER_KINDS: Final = ("certificates", "issuers")
"""Plurals of the kinds that the chart makes objects of."""
_MODULE: Final = "github.com/cert-manager/cert-manager@v1.21.2"
_SUM: Final = "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68="
"""Of its files, as a go.sum has it."""


def cert_manager_definitions() -> tuple[Path, ...]:
    """Return the file of each kind's definition, fetched when it is missing. Raises BuildError in words."""
    folder = _module_folder() / "deploy" / "crds"
    return tuple(folder / f"cert-manager.io_{plural}.yaml" for plural in CERT_MANAGER_KINDS)


def _module_folder() -> Path:
    go = shutil.which("go")
    if go is None:
        raise BuildError(f"{_MODULE}: Go is needed to fetch it and is not on PATH; install Go 1.26 or newer")
    place = cache_folder()
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [go, "mod", "download", "-json", _MODULE],
        cwd=place,
        env=os.environ | {"GOWORK": "off", "GOFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildError(f"{_MODULE} was not fetched:\n{done.stdout}{done.stderr}")
    told = json.loads(done.stdout)
    if told["Sum"] != _SUM:
        raise BuildError(f"{_MODULE}: its files have the sum {told['Sum']}, not {_SUM}")
    return Path(told["Dir"])
