"""One node as tests handle it: its images, commands inside it, its folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_harness.api_client import Json
from cluster_harness.binaries import NodeBinaries
from cluster_harness.errors import CommandError
from cluster_harness.importing import NAMESPACE
from cluster_harness.namespaces import Namespaces
from cluster_harness.node_plan import NodePlan
from cluster_harness.node_spec import CONTAINERD, KUBE_PROXY, KUBE_PROXY_HEALTH_PORT, KUBELET, KUBELET_HEALTH_PORT
from cluster_harness.prepared_images import has_images, note_images
from cluster_harness.probes import LOOPBACK, healthy
from cluster_harness.running import Probe


@dataclass(frozen=True, slots=True)
class Node:
    """A node that runs; the cluster starts and stops its components."""

    plan: NodePlan
    state_folder: Path
    namespaces: Namespaces
    binaries: NodeBinaries

    @property
    def name(self) -> str:
        """The name of the Node object."""
        return self.plan.name

    @property
    def kubelet_folder(self) -> Path:
        """The kubelet's state folder as this machine reaches it: ``device-plugins/kubelet.sock`` lies below it."""
        return self.plan.place_of(self.plan.kubelet_root, self.state_folder)

    @property
    def root(self) -> Path:
        """The node's whole file system as this machine reaches it, to read and to put files into."""
        return self.namespaces.root

    def execute(self, argv: Sequence[str]) -> str:
        """Run a command in the node and return its standard output; CommandError unless it exits 0."""
        return self.namespaces.run(argv)

    def import_image(self, archive: Path) -> None:
        """Load every image of an OCI or docker archive, so that pods may name them with imagePullPolicy Never.

        Nothing is done for an archive that the node has already.
        """
        if not has_images(archive, self.state_folder):
            self._ctr("images", "import", str(archive.resolve()))
            note_images(archive, self.state_folder)

    def probes(self) -> dict[str, Probe]:
        """Return for each component of a node the sign that it works."""
        return {
            CONTAINERD: self._containerd_answers,
            KUBELET: lambda: self._healthy(KUBELET_HEALTH_PORT),
            KUBE_PROXY: lambda: self._healthy(KUBE_PROXY_HEALTH_PORT),
        }

    def _healthy(self, port: int) -> bool:
        return healthy("http", LOOPBACK, self.namespaces.forward(LOOPBACK, port), "/healthz")

    def _containerd_answers(self) -> bool:
        try:
            self._ctr("version")
        except CommandError:
            return False
        return True

    def _ctr(self, *arguments: str) -> str:
        return self.namespaces.run([str(self.binaries.ctr), "--namespace", NAMESPACE, *arguments])


def is_ready(node: Json | None) -> bool:
    """Tell whether a Node object says Ready and lets pods be scheduled."""
    conditions = node["status"].get("conditions", []) if node else []
    ready = any(it["type"] == "Ready" and it["status"] == "True" for it in conditions)
    return ready and node is not None and not node["spec"].get("taints")
