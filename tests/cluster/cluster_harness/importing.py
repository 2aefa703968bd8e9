"""A containerd that lives only to import images into a root folder. Nothing of it is left on the machine but that."""

import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster_harness.binaries import NodeBinaries
from cluster_harness.errors import BuildError, DeadlineError
from cluster_harness.state_folder import BASE
from cluster_harness.waiting import wait_for

NAMESPACE = "k8s.io"
"""Where the kubelet's containerd looks for images."""
_END_SECONDS = 30.0
_LOG_CHARACTERS = 4000
# Pods are none of its business, and two of its plugins make folders at fixed places of the machine.
_CONFIG = """\
version = 3
root = "{root}"
state = "{state}/state"
disabled_plugins = [
  "io.containerd.cri.v1.images",
  "io.containerd.cri.v1.runtime",
  "io.containerd.grpc.v1.cri",
  "io.containerd.internal.v1.opt",
  "io.containerd.nri.v1.nri",
]

[grpc]
address = "{state}/grpc.sock"
"""


def import_all(archives: Iterable[Path], binaries: NodeBinaries, root: Path) -> None:
    """Import every image of the archives; ``root`` is containerd's root folder afterwards, and nobody uses it."""
    with (
        tempfile.TemporaryDirectory(prefix="cta-import-", dir=BASE) as state,
        _containerd(binaries, root, Path(state)) as address,
    ):
        for archive in archives:
            done = _ctr(binaries, address, "images", "import", str(archive))
            if done.returncode:
                raise BuildError(f"{archive} cannot be imported:\n{done.stdout}{done.stderr}")


@contextmanager
def _containerd(binaries: NodeBinaries, root: Path, state: Path) -> Iterator[str]:
    """Run containerd with its mounts to itself until the block ends, and yield its address; it ends with its owner."""
    config, log = state / "config.toml", state / "log"
    config.write_text(_CONFIG.format(root=root, state=state))
    program = ("unshare", "--mount", "setpriv", "--pdeathsig", "KILL", str(binaries.containerd))
    with log.open("wb") as output:
        process = subprocess.Popen([*program, "--config", str(config)], stdout=output, stderr=output)
    address = f"{state}/grpc.sock"

    def answers() -> bool:
        return process.poll() is not None or _ctr(binaries, address, "version").returncode == 0

    try:
        wait_for(answers, "containerd to answer")
        yield address
    except (BuildError, DeadlineError) as error:
        raise BuildError(f"{error}\n{log.read_text(errors='replace')[-_LOG_CHARACTERS:]}") from error
    finally:
        process.terminate()
        _wait_for_end(process)


def _wait_for_end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ctr(binaries: NodeBinaries, address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [str(binaries.ctr), "--address", address, "--namespace", NAMESPACE, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False)
