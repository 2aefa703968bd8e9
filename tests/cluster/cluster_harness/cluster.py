"""A real Kubernetes with a node that runs pods, in private namespaces of this machine. Needs root.

::

    with Cluster.start() as cluster:
        cluster.admin_kubeconfig              # Path; works from an ordinary shell: kubectl, helm, Python
        cluster.server                        # "https://127.0.0.1:PORT"
        cluster.api                           # ApiClient: the API as plain JSON, as an administrator
        cluster.import_image(archive)         # OCI or docker archive; pods name it with imagePullPolicy Never
        cluster.forward("10.96.7.7", 8080)    # a port of 127.0.0.1 that leads to a pod's or a service's address
        cluster.exec_in_node(["ip", "route"]) # the command's output; runs in the node's namespaces
        cluster.stop_kubelet()                # how=signal.SIGKILL for a crash
        cluster.start_kubelet()               # returns when the kubelet is healthy; the Node's conditions follow
        cluster.restart_kubelet()
        cluster.stop_component("kube-controller-manager")   # and start_component, restart_component, log
        cluster.add_component(component, probe)   # one more program in there; it reaches the API at inner_address
        cluster.wait_node_ready()
        more = cluster.add_node()             # a second node; the same verbs for its own kubelet: more.stop_kubelet()
        cluster.node.kubelet_folder           # Path on this machine; device-plugins/kubelet.sock lies below it
        cluster.node.root                     # Path of the node's whole file system, seen from this machine

Component names: ``etcd``, ``kube-apiserver``, ``kube-controller-manager``, ``kube-scheduler``, ``containerd``,
``kubelet``, ``kube-proxy``. Inside the node all paths are the usual ones (/var/lib/kubelet, /run/containerd, /etc/cdi,
/run/cta-group, ...) and private to it. No DNS service runs; pods reach the API server by KUBERNETES_SERVICE_HOST.

Everything is gone when the block ends, and also some seconds after this process was killed in whatever way.
``ClusterOptions`` has what may be varied. The first node also runs the control plane; ``nodes`` has all of them.
"""

import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cluster_harness.api_client import ApiClient
from cluster_harness.base_images import ensure_pause_archive
from cluster_harness.binaries import Binaries, ensure_binaries
from cluster_harness.certs import Authority, KeyPair
from cluster_harness.control_plane_probes import control_plane_probes
from cluster_harness.control_plane_spec import (
    ADMIN,
    API_SERVER,
    CREDENTIALS,
    ETCD,
    ControlPlaneOptions,
    ControlPlaneSpec,
    Ports,
    make_credentials,
)
from cluster_harness.errors import HarnessError
from cluster_harness.joined_node import JoinedNode, Joining
from cluster_harness.kubeconfig import write_kubeconfig
from cluster_harness.machine import Machine
from cluster_harness.namespaces import Namespaces
from cluster_harness.node import Node, is_ready
from cluster_harness.node_plan import NodePlan
from cluster_harness.node_spec import CONTAINERD, KUBELET, NodeOptions, NodeSpec
from cluster_harness.prepared_images import place_images
from cluster_harness.probes import LOOPBACK
from cluster_harness.running import READY_TIMEOUT_SECONDS, Running
from cluster_harness.state_folder import make_state_folder, require_root

# The usual ones: nobody else listens in the private network.
_PORTS = Ports(api_server=6443, etcd_client=2379, etcd_peer=2380, controller_manager=10257, scheduler=10259)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What a test may vary; see the parts.

    ``images`` are archives whose images the node has from its start: much cheaper than to import them one by one.
    """

    control_plane: ControlPlaneOptions = field(default_factory=ControlPlaneOptions)
    node: NodeOptions = field(default_factory=NodeOptions)
    images: tuple[Path, ...] = ()


class Cluster(Running):
    """A running cluster; made by ``start``, or by ``attach`` for one that was started elsewhere."""

    def __init__(self, machine: Machine, plan: NodePlan, binaries: Binaries) -> None:
        namespaces = Namespaces(machine.control)
        credentials = machine.folder / CREDENTIALS
        port = _api_port(machine.folder, namespaces, plan)
        self.folder = machine.folder
        self.node = Node(plan, machine.folder, namespaces, binaries.node)
        self.nodes = [self.node]
        self._options = ClusterOptions()
        self._binaries = binaries
        self._joined: list[JoinedNode] = []
        self.server = f"https://{LOOPBACK}:{port}"
        self.certificate_authority = credentials / "ca.crt"
        self.admin_kubeconfig = machine.folder / "admin.kubeconfig"
        admin = KeyPair.named(credentials, ADMIN)
        write_kubeconfig(self.admin_kubeconfig, self.server, self.certificate_authority, admin)
        self.inner_address = (plan.address, _PORTS.api_server)
        self.api = ApiClient(LOOPBACK, port, self.certificate_authority, admin)
        probes = control_plane_probes(_PORTS, self.api, lambda it: namespaces.forward(LOOPBACK, it))
        super().__init__(machine, {**probes, **self.node.probes()})

    @classmethod
    def start(cls, options: ClusterOptions | None = None) -> Self:
        """Build what is missing, start everything, and return when the node is Ready."""
        options = options or ClusterOptions()
        require_root()
        binaries = ensure_binaries()
        folder, lock = make_state_folder()
        options.node.plan.write(folder)
        machine = Machine.start(folder, lock)
        try:
            _declare(machine, options, binaries)
            cluster = cls(machine, options.node.plan, binaries)
            cluster._options = options
            images = (ensure_pause_archive(binaries.node.pause), *options.images)
            place_images(images, binaries.node, options.node.plan, folder)
            cluster._start_components(images)
        except BaseException:
            machine.close()
            raise
        return cluster

    @classmethod
    def attach(cls, folder: Path) -> Self:
        """Return the cluster that runs in the state folder; ``close`` ends it although it was started elsewhere."""
        plan = NodePlan.read(folder)
        if plan is None:
            raise HarnessError(f"no cluster with a node runs in {folder}")
        return cls(Machine.attach(folder), plan, ensure_binaries())

    def detach(self) -> None:
        """Let the cluster live on when this process ends; ``Cluster.attach(cluster.folder)`` finds it again.

        Nodes that were added end with this process all the same.
        """
        self._machine.detach()

    def add_node(self, options: NodeOptions | None = None) -> JoinedNode:
        """Start a further node with the images of the first, and return when it is Ready.

        ``options``: by default a node-N with the next number; theirs must be another than those of the nodes there are.
        """
        number = 1 + max(node.plan.number for node in self.nodes)
        options = options or NodeOptions(NodePlan(name=f"node-{number}", number=number))
        joining = Joining(
            self.node.namespaces,
            f"https://{self.node.plan.address}:{_PORTS.api_server}",
            Authority(self.folder / CREDENTIALS),
            self._options.control_plane.feature_gates,
            self._binaries.node,
            (ensure_pause_archive(self._binaries.node.pause), *self._options.images),
        )
        joined = JoinedNode.start(options, joining)
        self._joined.append(joined)
        self.nodes.append(joined.node)
        joined.wait_ready(self.api)
        return joined

    def close(self) -> None:
        """End every process of every node and remove the state folders; return when that is done."""
        try:
            self.api.close()
            for joined in self._joined:
                joined.close()
        finally:
            super().close()

    def import_image(self, archive: Path) -> None:
        """Load every image of the archive on every node."""
        for node in self.nodes:
            node.import_image(archive)

    def forward(self, host: str, port: int) -> int:
        """Return a port of 127.0.0.1 that leads to the address of a pod, a service or a node."""
        return self.node.namespaces.forward(host, port)

    def exec_in_node(self, argv: Sequence[str]) -> str:
        """Run a command in the node's namespaces and return its output; CommandError unless it exits 0."""
        return self.node.execute(argv)

    def stop_kubelet(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop the kubelet; containers run on."""
        self.stop_component(KUBELET, how)

    def start_kubelet(self) -> None:
        """Start the stopped kubelet and return when it says that it is healthy."""
        self.start_component(KUBELET)

    def restart_kubelet(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop the kubelet, start it again and return when it says that it is healthy."""
        self.restart_component(KUBELET, how)

    def wait_node_ready(self, timeout_seconds: float = READY_TIMEOUT_SECONDS) -> None:
        """Wait until the Node object says Ready and lets pods be scheduled."""
        path = f"/api/v1/nodes/{self.node.name}"
        self._machine.wait(lambda: is_ready(self.api.find(path)), KUBELET, timeout_seconds)

    def _start_components(self, images: Iterable[Path]) -> None:
        """Start etcd, then the API server, then the rest: each gives up while the one before is away."""
        first = (CONTAINERD, ETCD, API_SERVER)
        self._start_in_order(first, each_ready={ETCD})
        for archive in images:
            self.import_image(archive)
        self._start_in_order([name for name in self._machine.control.names() if name not in first], each_ready=())
        self.wait_node_ready()


def _declare(machine: Machine, options: ClusterOptions, binaries: Binaries) -> None:
    """Write all credentials and files, and tell the supervisor how each component is started."""
    plan = options.node.plan
    credentials = make_credentials(machine.folder / CREDENTIALS, plan.address, _PORTS.api_server)
    control_plane = ControlPlaneSpec(
        machine.folder, plan.address, _PORTS, binaries.control_plane, credentials, options.control_plane
    )
    node = NodeSpec(
        machine.folder,
        options.node,
        binaries.node,
        credentials.authority,
        api_server=f"https://{plan.address}:{_PORTS.api_server}",
        feature_gates=options.control_plane.feature_gates,
    )
    for component in (*control_plane.components().values(), *node.components().values()):
        machine.control.declare(component)


def _api_port(folder: Path, namespaces: Namespaces, plan: NodePlan) -> int:
    """Return the port on this machine that leads to the API server, the same for everybody who attaches."""
    note = folder / "api-port"
    if not note.exists():
        note.write_text(str(namespaces.forward(plan.address, _PORTS.api_server)))
    return int(note.read_text())
