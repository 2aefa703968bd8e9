"""Settings of the operator, typed and frozen. They enter once, in :mod:`cta_group_operator.cli`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cta_group_core.align_mode import AlignMode
from cta_group_core.log_lines import LogFormat
from cta_group_core.names import DEFAULT_RESOURCE_NAME

WATCH_SECONDS: Final = 40
"""How long the API server keeps a watch open. It tells the position shortly before the end, where it does so at all,
and the next watch goes on there; and a connection that somebody dropped without a word is not believed in for long."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long the webhook's certificates are good for, and how long steps of a rotation wait. In seconds.

    A certificate is replaced after two thirds of its life. The defaults leave months to notice that it does not work.
    """

    authority_seconds: int = 10 * 365 * 86_400
    serving_seconds: int = 365 * 86_400
    propagation_seconds: int = 20
    """From a new authority in the webhook configuration until it signs: every API server has heard of it by then."""
    overlap_seconds: int = 3_600
    """From a new serving certificate until the old authority is no longer trusted: every replica uses it by then."""
    poll_seconds: float = 5.0
    """How often replicas look for a new certificate, and the leader for something to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that ``cta-group-operator run`` can be told."""

    identity: str
    """Name of this replica in the lease: unique among those that run."""
    namespace: str = "cta-group"
    """Namespace that the operator runs in: of the lease, the webhook's Service and its Secret."""
    resource_name: str = DEFAULT_RESOURCE_NAME
    lease_name: str = "cta-group-operator"
    webhook_port: int = 9443
    """Port of the admission endpoint; 0: not served."""
    webhook_service_name: str = "cta-group-operator"
    webhook_secret_name: str = "cta-group-webhook"  # noqa: S105 - the name of an object, not a secret
    """Secret with the certificate that the operator makes and rotates, read by every replica."""
    webhook_configuration_name: str = "cta-group"
    """Name of the two webhook configurations, mutating and validating, whose authority the operator keeps."""
    webhook_tls_dir: Path | None = None
    """Folder with ``tls.crt`` and ``tls.key`` that somebody else rotates; then no Secret is touched."""
    webhook_lifetimes: Lifetimes = Lifetimes()
    placement: bool = True
    """Gate pods and choose their nodes. Off: gates that are there are taken off, and no node is chosen."""
    deletes_refused_pods: bool = True
    """Delete a controller's pods that a kubelet refused because of their groups; off: they stay, failed."""
    gateless_schedulers: frozenset[str] = frozenset()
    """Names of schedulers that bind pods whatever gates they have; their pods are neither gated nor given a node."""
    slipped_pods_seconds: int = 60
    """How often all pods without the webhook's label are listed, to find those that ask for the resource."""
    replan_after_seconds: float = 30.0
    """How long the scheduler may fail to bind a pod that was released before it is planned again."""
    scale_up_after_seconds: float | None = None
    """How long a pod may find no room before it is shown to the cluster's autoscaler, released without a node. None:
    the cluster has no autoscaler."""
    stale_node_seconds: int = 900
    """A CTANode that its plugin has not confirmed for so long is stale. Plugins confirm theirs every five minutes."""
    alignment: AlignMode = AlignMode.ON
    budget_seconds: int = 30
    """How often the vLLM metrics of workloads with a latency budget are read; 0: never."""
    runtime_class: str = ""
    """RuntimeClass that brings GPUs into pods, where the nodes' default runtime does not and slices come by environment
    variables. Empty: none is needed."""
    sets_runtime_class: bool = False
    """Give it to pods that ask for the resource and name no class; otherwise they are only told."""
    metrics_address: str = "0.0.0.0:9402"
    """``host:port`` of /metrics, /healthz and /readyz; empty: not served."""
    watch_seconds: int = WATCH_SECONDS
    """After so long each watch is opened anew; one whose connection is dead is given up five seconds later."""
    kubeconfig: Path | None = None
    """None: the service account of the pod."""
    log_level: str = "info"
    log_format: LogFormat = "text"
