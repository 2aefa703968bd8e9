"""A release that is about to be uninstalled: pods that run on its groups, pods that wait, and what is left of it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cluster_harness import release
from cluster_harness.cluster import Cluster
from cluster_harness.tools import Ended, Tools
from cluster_harness.waiting import PATIENCE_SECONDS, wait_for
from cta_group_core.names import GATE_PLACEMENT
from mps_on_node import MPS_ROOT, NodeDaemons
from rehearsing import wait_gated
from team import RESOURCE, Team, allocatable

RUNNING = ("running-0", "running-1")
WAITING = ("waiting-0", "waiting-1", "waiting-2")
ONE_H100 = 128


@dataclass(frozen=True)
class Doomed:
    """One release on a node with one simulated H100: two pods hold 32 groups each, three ask for 96 and wait."""

    cluster: Cluster
    tools: Tools
    team: Team

    @cached_property
    def daemons(self) -> NodeDaemons:
        """The MPS daemons of the node."""
        return NodeDaemons(self.cluster, self.tools)

    def fill(self) -> None:
        """Start the pods that run and those that wait, and wait until both are so."""
        self.wait_admission()
        for name in RUNNING:
            self.team.start_pod(name, 32)
        self.team.wait_running(*RUNNING)
        for name in WAITING:
            self.team.start_pod(name, 96)
        wait_for(lambda: self.gated() == list(WAITING), "three pods to wait for a GPU")

    def wait_admission(self) -> None:
        """Wait until pods are gated and aligned: after an install the API server learns of the webhook by and by."""
        wait_gated(self.tools, self.team.namespace)

    def gated(self) -> list[str]:
        """Return the pods that have the gate of placement."""
        return sorted(
            pod["metadata"]["name"]
            for pod in self.team.pods()
            if any(gate["name"] == GATE_PLACEMENT for gate in pod["spec"].get("schedulingGates", ()))
        )

    def containers(self) -> dict[str, tuple[str, int]]:
        """Return the container and its restarts of each pod that runs."""
        statuses = {name: self.team.pod(name)["status"]["containerStatuses"][0] for name in RUNNING}
        return {name: (status["containerID"], status["restartCount"]) for name, status in statuses.items()}

    def uninstall(self, *more: str, program: str = "helm") -> Ended:
        """Uninstall the release as a person does; whatever it says, it has ended within its timeout."""
        place = ("--namespace", release.NAMESPACE, "--timeout", f"{PATIENCE_SECONDS:g}s")
        return self.tools.attempt(program, "uninstall", release.NAME, *place, *more)

    def wait_gone(self) -> None:
        """Wait until nothing of the release runs any more and the node offers nothing."""
        kinds = "daemonsets,deployments,jobs,pods"
        objects = ("get", kinds, "-n", release.NAMESPACE, "-o", "name")
        wait_for(lambda: not self.tools.kubectl(*objects), "the release to be gone")
        wait_for(lambda: allocatable(self.tools) == 0, "the node to offer nothing")

    def sockets(self) -> list[str]:
        """Return the sockets of the project that are left on the node."""
        root = self.cluster.node.root
        plugins = [path for path in (self.cluster.node.kubelet_folder / "device-plugins").iterdir() if path.is_socket()]
        ours = [path for path in _files(root / MPS_ROOT.relative_to("/")) if path.is_socket()]
        return sorted(path.name for path in [*plugins, *ours] if path.name != "kubelet.sock")

    def capacity(self) -> str | None:
        """Return what the Node object says of the resource's capacity."""
        (node,) = self.tools.api.items("/api/v1/nodes")
        told: str | None = node["status"]["capacity"].get(RESOURCE)
        return told


def _files(folder: Path) -> list[Path]:
    return list(folder.rglob("*"))
