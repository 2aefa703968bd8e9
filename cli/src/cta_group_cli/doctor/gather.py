"""Reads everything that the findings look at. What whoever asks may not read is noted and not looked at."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from cta_group_cli.doctor_facts import (
    DoctorReader,
    Machine,
    Policy,
    PolicyBinding,
    Rehearsal,
    ReleaseWorkload,
    RuntimeClass,
    WebhookConfiguration,
)
from cta_group_cli.errors import AccessDenied, ClusterUnavailable, KindMissing, NotFound
from cta_group_cli.objects import Pod
from cta_group_cli.observed import groups_of
from cta_group_cli.ports import Node, Unreadable, resource_of
from cta_group_core.compatibility.host_findings import is_churning_version
from cta_group_core.names import LABEL_COMPONENT

_MOST_KUBELETS: Final = 16
"""So many kubelets are asked for their configuration: each is a call through the API server."""

Read = TypeVar("Read")


@dataclass(frozen=True)
class Facts:
    """What was read. Absent parts are empty, and said in ``unread``."""

    nodes: Sequence[Node] = ()
    unreadable: Sequence[Unreadable] = ()
    machines: Mapping[str, Machine] = field(default_factory=dict)
    workloads: Sequence[ReleaseWorkload] = ()
    release_pods: Sequence[Pod] = ()
    webhooks: Sequence[WebhookConfiguration] = ()
    policies: Sequence[Policy] = ()
    bindings: Sequence[PolicyBinding] = ()
    classes: Sequence[RuntimeClass] = ()
    tenants: Sequence[Pod] = ()
    """Pods that ask for groups and have not ended."""
    gates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    """By node; nodes whose kubelet was not asked are absent."""
    rehearsal: Rehearsal | None = None
    unread: Sequence[str] = ()
    """In sentences, what could not be looked at."""
    asked_for: str | None = None
    """The node that was named."""
    has_kinds: bool = True
    """The project's kinds are known to the cluster."""

    @property
    def names(self) -> Sequence[str]:
        """Every node that is examined: those that have published, and those with a pod of the plugin."""
        if self.asked_for is not None:
            return [self.asked_for]
        with_plugin = {pod.spec.node_name for pod in self.pods_of("plugin") if pod.spec.node_name}
        return sorted(with_plugin | {node.name for node in self.nodes} | {entry.name for entry in self.unreadable})

    def pods_of(self, component: str, node: str | None = None) -> Sequence[Pod]:
        """Return the release's pods of a component, of one node or of all."""
        return [
            pod
            for pod in self.release_pods
            if pod.metadata.labels.get(LABEL_COMPONENT) == component and node in {None, pod.spec.node_name}
        ]

    def workload(self, component: str) -> ReleaseWorkload | None:
        """Return the release's DaemonSet or Deployment of a component."""
        found = (one for one in self.workloads if one.metadata.labels.get(LABEL_COMPONENT) == component)
        return next(found, None)


@dataclass
class _Asking:
    """Asks, and notes what may not be read."""

    unread: list[str] = field(default_factory=list)

    def for_all(self, what: str, ask: Callable[[], Sequence[Read]]) -> Sequence[Read]:
        try:
            return ask()
        except AccessDenied as denied:
            self.unread.append(f"{what}: {denied}")
            return ()


def gather(reader: DoctorReader, name: str | None) -> Facts:
    """Read a cluster, or what concerns one node of it. Raises NotFound for a node that does not exist."""
    asking = _Asking()
    entries, has_kinds = _published(reader)
    machines = {one.metadata.name: one for one in asking.for_all("Nodes", reader.machines)}
    if name is not None and machines and name not in machines and name not in {entry.name for entry in entries}:
        raise NotFound(f"no node {name!r}; nodes: {', '.join(sorted(machines))}")
    nodes = [entry for entry in entries if isinstance(entry, Node) and name in {None, entry.name}]
    resource = resource_of(nodes)
    pods = asking.for_all("pods", partial(reader.tenant_pods, name))
    return Facts(
        nodes=nodes,
        unreadable=[entry for entry in entries if isinstance(entry, Unreadable) and name in {None, entry.name}],
        machines=machines,
        workloads=asking.for_all("DaemonSets and Deployments of the release", reader.release_workloads),
        release_pods=asking.for_all("pods of the release", reader.release_pods),
        webhooks=asking.for_all("webhooks", reader.webhooks),
        policies=asking.for_all("policies", reader.policies),
        bindings=asking.for_all("bindings of policies", reader.policy_bindings),
        classes=asking.for_all("RuntimeClasses", reader.runtime_classes),
        tenants=[pod for pod in pods if groups_of(pod.spec, resource)],
        gates=_gates(reader, [machines[node.name] for node in nodes if node.name in machines], asking),
        rehearsal=_rehearsal(reader, nodes, resource, asking),
        unread=asking.unread,
        asked_for=name,
        has_kinds=has_kinds,
    )


def _published(reader: DoctorReader) -> tuple[Sequence[Node | Unreadable], bool]:
    """Return the CTANodes, and whether the cluster knows the kind; the rest of a release may be there without it."""
    try:
        return reader.nodes(), True
    except KindMissing:
        return (), False


def _gates(reader: DoctorReader, machines: Iterable[Machine], asking: _Asking) -> dict[str, Mapping[str, bool]]:
    """Ask the kubelets of the versions for which the answer matters."""
    asked = [one.metadata.name for one in machines if is_churning_version(one.status.node_info.kubelet_version)]
    found: dict[str, Mapping[str, bool]] = {}
    for name in asked[:_MOST_KUBELETS]:
        try:
            found[name] = reader.kubelet_gates(name)
        except ClusterUnavailable as problem:
            asking.unread.append(f"feature gates of kubelet on {name}: {problem}")
            return found  # it will be the same on the next one, and a kubelet that is away costs time
    if more := asked[_MOST_KUBELETS:]:
        asking.unread.append(f"feature gates of kubelet on {len(more)} more nodes: name one of them to ask it")
    return found


def _rehearsal(reader: DoctorReader, nodes: Sequence[Node], resource: str, asking: _Asking) -> Rehearsal | None:
    """Let a pod of an allowed size be admitted for show."""
    sizes = [gpu.minimum for node in nodes for gpu in node.status.gpus if gpu.minimum]
    if not sizes:
        return None
    try:
        return reader.rehearse_pod(resource, sizes[0])
    except ClusterUnavailable as refused:  # a quota, a policy of others, a right: nothing is known then
        asking.unread.append(f"whether the webhook is reached: {refused}")
        return None
