"""KWOK beside a control plane: it keeps Node objects that are ready so, as kubelets would, with leases.

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

_KEEPS_NODES = """\
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector:
    matchExpressions:
    - {key: '.status.conditions.[] | select( .type == "Ready" ) | .status', operator: NotIn, values: ["True"]}
  next:
    statusTemplate: |
      {{ $now := Now }}
      conditions:
      - {type: Ready, status: "True", reason: Kwok, lastTransitionTime: {{ $now | Quote }}}
      phase: Running
---
"""
"""KWOK plays the pods of no node that it has no stage for."""
_REMOVES_PODS = """\
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
_STARTS_PODS = """\
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Pending]}
  next:
    statusTemplate: |
      {{ $now := Now }}
      conditions:
      {{ range $type := list "Initialized" "Ready" "ContainersReady" }}
      - {type: {{ $type }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
      {{ end }}
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        name: {{ .name | Quote }}
        ready: true
        restartCount: 0
        state: {running: {startedAt: {{ $now | Quote }}}}
      {{ end }}
      phase: Running
      startTime: {{ $now | Quote }}
"""


def start_kwok(plane: ControlPlane, folder: Path, *, starts_pods: bool) -> None:
    """Run KWOK as a component of the control plane (``KWOK``), and return when it works."""
    (port,) = free_ports(LOOPBACK, 1)
    config = folder / "kwok.yaml"
    config.write_text(_KEEPS_NODES + _REMOVES_PODS + (_STARTS_PODS if starts_pods else ""))
    own = flags(
        kubeconfig=plane.admin_kubeconfig,
        config=config,
        manage_nodes_with_label_selector=f"{KWOK_LABEL}={KWOK}",
        node_lease_duration_seconds=40,
        server_address=f"{LOOPBACK}:{port}",
    )
    command = Component(KWOK, (str(ensure_kwok()), *own))
    plane.add_component(command, lambda: healthy("http", LOOPBACK, port, "/healthz"))
