"""KWOK beside a control plane: it keeps Node objects alive as kubelets would, with leases and heartbeats.

What becomes of the pods on them is either KWOK's too (they start at once and end at once), or the test's own: then KWOK
only removes those that are being deleted, as a kubelet does when their containers have ended.
"""

from pathlib import Path

from cluster_harness.binaries import ensure_kwok
from cluster_harness.components import Component, flags
from cluster_harness.control_plane import ControlPlane
from cluster_harness.probes import LOOPBACK, free_ports, healthy

KWOK = "kwok"
KWOK_LABEL = "kept-alive-by"
"""On a Node with the value ``kwok``: KWOK keeps it."""

_ONLY_REMOVE_PODS = """\
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-delete}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
  next: {delete: true}
"""


def start_kwok(plane: ControlPlane, folder: Path, *, starts_pods: bool) -> None:
    """Run KWOK as a component of the control plane (``KWOK``), and return when it works."""
    (port,) = free_ports(LOOPBACK, 1)
    config = folder / "kwok.yaml"
    config.write_text("" if starts_pods else _ONLY_REMOVE_PODS)
    own = flags(
        kubeconfig=plane.admin_kubeconfig,
        config=config,
        manage_nodes_with_label_selector=f"{KWOK_LABEL}={KWOK}",
        node_lease_duration_seconds=40,
        server_address=f"{LOOPBACK}:{port}",
    )
    command = Component(KWOK, (str(ensure_kwok()), *own))
    plane.add_component(command, lambda: healthy("http", LOOPBACK, port, "/healthz"))
