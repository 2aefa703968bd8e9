"""A further node of a cluster that runs: a machine of its own, whose only link leads to the first node.

It has a warden of its own, so it ends with the process that added it, however that one ends, and with the cluster. Pods
of both nodes reach each other, the services and the API server, which reaches its kubelet.
"""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from cluster_harness.api_client import ApiClient
from cluster_harness.binaries import NodeBinaries
from cluster_harness.certs import Authority
from cluster_harness.machine import Machine
from cluster_harness.namespaces import Namespaces
from cluster_harness.node import Node, is_ready
from cluster_harness.node_init import LINK
from cluster_harness.node_plan import NodePlan
from cluster_harness.node_spec import CONTAINERD, KUBELET, NodeOptions, NodeSpec
from cluster_harness.prepared_images import place_images
from cluster_harness.running import READY_TIMEOUT_SECONDS, Running
from cluster_harness.state_folder import make_state_folder


@dataclass(frozen=True, slots=True)
class Joining:
    """What a cluster gives a node that joins it. ``api_server``: its URL; ``images``: archives as of ``Cluster``."""

    first: Namespaces
    api_server: str
    authority: Authority
    feature_gates: Mapping[str, bool]
    binaries: NodeBinaries
    images: tuple[Path, ...]


class JoinedNode(Running):
    """Its components (containerd, kubelet, kube-proxy) by name, and the node as tests handle it."""

    def __init__(self, machine: Machine, plan: NodePlan, binaries: NodeBinaries) -> None:
        self.folder = machine.folder
        self.node = Node(plan, machine.folder, Namespaces(machine.control), binaries)
        super().__init__(machine, self.node.probes())

    @classmethod
    def start(cls, options: NodeOptions, joining: Joining) -> Self:
        """Start everything of the node and return when its components work; ``wait_ready`` waits for the Node."""
        options = replace(options, plan=replace(options.plan, joins=True))
        folder, lock = make_state_folder()
        options.plan.write(folder)
        machine = Machine.start(folder, lock)
        try:
            joined = cls(machine, options.plan, joining.binaries)
            _connect(joining.first, joined.node)
            spec = NodeSpec(
                folder,
                options,
                joining.binaries,
                joining.authority,
                api_server=joining.api_server,
                feature_gates=joining.feature_gates,
            )
            for component in spec.components().values():
                machine.control.declare(component)
            place_images(joining.images, joining.binaries, options.plan, folder)
            joined._start_in_order([CONTAINERD], each_ready={CONTAINERD})
            for archive in joining.images:
                joined.node.import_image(archive)
            joined._start_in_order([name for name in machine.control.names() if name != CONTAINERD], each_ready=())
        except BaseException:
            machine.close()
            raise
        return joined

    def wait_ready(self, api: ApiClient) -> None:
        """Wait until the Node object says Ready and lets pods be scheduled."""
        path = f"/api/v1/nodes/{self.node.name}"
        self._machine.wait(lambda: is_ready(api.find(path)), KUBELET, READY_TIMEOUT_SECONDS)

    def stop_kubelet(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop the kubelet; containers run on, and after a while Kubernetes takes the node for lost."""
        self.stop_component(KUBELET, how)

    def start_kubelet(self) -> None:
        """Start the stopped kubelet and return when it says that it is healthy."""
        self.start_component(KUBELET)


def _connect(first: Namespaces, node: Node) -> None:
    """Make the link between the first node and this one, and the way to the pods of this one."""
    plan, there = node.plan, f"to-node-{node.plan.number}"
    first.join(node.namespaces, there, LINK)
    node.namespaces.ip("address", "add", f"{plan.address}/30", "dev", LINK)
    node.namespaces.ip("link", "set", LINK, "up")
    first.ip("address", "add", f"{plan.gateway}/30", "dev", there)
    first.ip("link", "set", there, "up")
    first.ip("route", "add", plan.pod_range, "via", plan.address)
    node.namespaces.ip("route", "add", "default", "via", plan.gateway)
