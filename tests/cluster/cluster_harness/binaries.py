"""The programs of a real cluster, built once from the Go module proxy and kept in the cache folder.

``python -m cluster_harness.binaries`` builds what a cluster needs; a second run takes no time.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cluster_harness.cache import cache_folder, content_key, exclusive
from cluster_harness.errors import BuildError
from cluster_harness.go_build import GoModule, ensure_module

KUBERNETES_VERSION = "v1.37.2"
_MAJOR, _MINOR, _PATCH = KUBERNETES_VERSION.removeprefix("v").split(".")
_VERSION_PACKAGE = "k8s.io/component-base/version"

KUBERNETES = GoModule(
    "kubernetes",
    tuple(
        f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
    ),
    ldflags=(
        f"-s -w -X {_VERSION_PACKAGE}.gitVersion={KUBERNETES_VERSION}"
        f" -X {_VERSION_PACKAGE}.gitMajor={_MAJOR} -X {_VERSION_PACKAGE}.gitMinor={_MINOR}"
    ),
)
ETCD = GoModule("etcd", ("go.etcd.io/etcd/server/v3",), renames=(("go.etcd.io/etcd/server/v3", "etcd"),))
CONTAINERD = GoModule(
    "containerd",
    tuple(
        f"github.com/containerd/containerd/v2/cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    ),
)
KWOK = GoModule("kwok", ("sigs.k8s.io/kwok/cmd/kwok",))

# The sandbox container of every pod: it only has to exist, and to end when it is told to.
_PAUSE_SOURCE = """\
#include <signal.h>
#include <unistd.h>
static void end(int signal) { (void)signal; _exit(0); }
int main(void) {
  signal(SIGTERM, end);
  signal(SIGINT, end);
  for (;;) pause();
}
"""


@dataclass(frozen=True, slots=True)
class ControlPlaneBinaries:
    """The programs that a cluster without nodes needs; each exists."""

    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    etcd: Path


@dataclass(frozen=True, slots=True)
class NodeBinaries:
    """The programs that run on each node; each exists. The shim lies beside containerd, which finds it there."""

    kubelet: Path
    kube_proxy: Path
    containerd: Path
    containerd_shim: Path
    ctr: Path
    pause: Path


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs of a whole cluster."""

    control_plane: ControlPlaneBinaries
    node: NodeBinaries


def ensure_control_plane_binaries() -> ControlPlaneBinaries:
    """Build what a control plane needs, unless an earlier run did; raise BuildError in words."""
    kubernetes = ensure_module(KUBERNETES)
    return ControlPlaneBinaries(
        kube_apiserver=kubernetes / "kube-apiserver",
        kube_controller_manager=kubernetes / "kube-controller-manager",
        kube_scheduler=kubernetes / "kube-scheduler",
        etcd=ensure_module(ETCD) / "etcd",
    )


def ensure_binaries() -> Binaries:
    """Build what a whole cluster needs, unless an earlier run did; raise BuildError in words."""
    kubernetes = ensure_module(KUBERNETES)
    control_plane = ensure_control_plane_binaries()
    containerd = ensure_module(CONTAINERD)
    node = NodeBinaries(
        kubelet=kubernetes / "kubelet",
        kube_proxy=kubernetes / "kube-proxy",
        containerd=containerd / "containerd",
        containerd_shim=containerd / "containerd-shim-runc-v2",
        ctr=containerd / "ctr",
        pause=_ensure_pause(),
    )
    return Binaries(control_plane, node)


def ensure_kwok() -> Path:
    """Build KWOK, which plays thousands of nodes, unless an earlier run did."""
    return ensure_module(KWOK) / "kwok"


def _ensure_pause() -> Path:
    ready = cache_folder() / "bin" / f"pause-{content_key(_PAUSE_SOURCE)}" / "pause"
    with exclusive(ready.parent.with_suffix(".lock")):
        if not ready.exists():
            _compile_pause(ready)
    return ready


def _compile_pause(target: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise BuildError("pause: a C compiler is needed (Debian: gcc and libc6-dev)")
    target.parent.mkdir(parents=True, exist_ok=True)
    source = target.with_suffix(".c")
    source.write_text(_PAUSE_SOURCE)
    partial = target.with_suffix(".partial")
    argv = [compiler, "-static", "-Os", "-s", "-o", str(partial), str(source)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"pause: `{' '.join(argv)}` failed:\n{done.stderr.strip()}")
    partial.rename(target)


if __name__ == "__main__":
    ensure_binaries()
