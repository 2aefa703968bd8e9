"""The MPS daemons of a real node with simulated GPUs, seen from outside: processes, clients, compute modes, pods."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_plugin.adapters.simulated_compute_modes import FILE_NAME as COMPUTE_MODE_FILE
from cta_group_plugin.simulated.mps_daemon import STATE_NAME

MPS_ROOT = Path("/run/cta-group/mps")
_PODS = f"/api/v1/namespaces/{release.NAMESPACE}/pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dmps"


@dataclass(frozen=True, slots=True)
class NodeDaemons:
    """The daemons of the only node."""

    cluster: Cluster
    tools: Tools

    def pids(self) -> dict[str, int]:
        """Return the process id of each GPU's daemon that runs, in the node."""
        noted: dict[str, int] = {}
        for path in self._files("daemon.json"):
            with suppress(FileNotFoundError):  # a daemon that ends takes it away
                noted[path.parent.name] = json.loads(path.read_text())["pid"]
        return {gpu: pid for gpu, pid in noted.items() if (self._proc / str(pid)).exists()}

    def clients(self, gpu: str) -> list[int]:
        """Return the process ids of a daemon's clients, in the node."""
        told: dict[str, Any] = json.loads((self._folder(gpu) / "pipe" / STATE_NAME).read_text())
        return list(told["clients"])

    def compute_mode(self, gpu: str) -> str:
        """Return the simulated compute mode of a GPU."""
        return (self._folder(gpu) / COMPUTE_MODE_FILE).read_text().strip()

    def faults(self, gpu: str, *faults: str) -> None:
        """Give a daemon these faults and no others."""
        (self._folder(gpu) / "pipe" / "simulated-faults").write_text("\n".join(faults))

    def cgroups_of(self, pid: int) -> set[str]:
        """Return the cgroup of a process in each hierarchy, as the node names it."""
        lines = self.cluster.exec_in_node(["cat", f"/proc/{pid}/cgroup"]).splitlines()
        return {line.split(":", 2)[2] for line in lines}

    def supervisor(self) -> dict[str, Any]:
        """Return the supervisor's pod."""
        (pod,) = self.tools.api.items(_PODS)
        return dict(pod)

    def delete_supervisor(self) -> dict[str, Any]:
        """Delete the supervisor's pod and return its successor once that is ready."""
        gone = self.supervisor()["metadata"]["name"]
        self.tools.kubectl("-n", release.NAMESPACE, "delete", "pod", gone, "--timeout=180s")
        return wait_for(lambda: self._ready_supervisor(gone), "another supervisor to be ready")

    def _ready_supervisor(self, gone: str) -> dict[str, Any] | None:
        for pod in self.tools.api.items(_PODS):
            conditions = {it["type"]: it["status"] for it in pod["status"].get("conditions", [])}
            if pod["metadata"]["name"] != gone and conditions.get("Ready") == "True":
                return dict(pod)
        return None

    @property
    def _proc(self) -> Path:
        return self.cluster.node.root / "proc"

    def _folder(self, gpu: str) -> Path:
        return self._root / gpu

    @property
    def _root(self) -> Path:
        return self.cluster.node.root / MPS_ROOT.relative_to("/")

    def _files(self, name: str) -> list[Path]:
        return sorted(self._root.glob(f"GPU-*/{name}"))
