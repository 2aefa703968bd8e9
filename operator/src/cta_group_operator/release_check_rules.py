"""What the answers of a cluster tell about a release that should work there. Pure: answers in, findings out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.compatibility.webhook_findings import PATH_REMEDY, unseen_finding
from cta_group_core.names import (
    CONDITION_HOLDERS_KNOWN,
    CONDITION_MPS_READY,
    CONDITION_REGISTERED,
    CONDITION_REPORTING,
    GATE_PLACEMENT,
    LABEL_COMPONENT,
)
from cta_group_core.nodes import ConditionStatus, NodeStatus
from cta_group_operator.errors import ApiError, Forbidden, NotFound, Rejected
from cta_group_operator.ports import Json

_SHOWN_NODES: Final = 5
_RENEWED_SECONDS: Final = 15.0
"""Longer than a leader's silence lasts until another replica leads."""
_UNREACHED: Final = "failed calling webhook"
"""In the API server's words where `failurePolicy` is Fail."""
_PARTS: Final = {
    CONDITION_REPORTING: "plugin",
    CONDITION_REGISTERED: "plugin",
    CONDITION_HOLDERS_KNOWN: "plugin",
    CONDITION_MPS_READY: "mps",
}
"""Conditions of a CTANode that parts of the release make true, and the component whose log tells why one is not."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A pod that admission saw and nobody stored."""

    pod: Json
    seconds: float


@dataclass(frozen=True, slots=True)
class Release:
    """Which release is judged, as its values say."""

    namespace: str
    """Its own."""
    resource_name: str
    gates: bool
    """Placement is on: pods are gated at their admission."""

    def look(self, component: str) -> str:
        """Return the command that shows the pods of a component."""
        return f"kubectl -n {self.namespace} get pods -l {LABEL_COMPONENT}={component} -o wide"


def rehearsal_findings(release: Release, rehearsal: Rehearsal) -> Iterator[Finding]:
    """Yield what is wrong when a pod that asks for groups was admitted like this."""
    labels = rehearsal.pod["metadata"].get("labels") or {}
    if unseen := unseen_finding("webhook", labels, rehearsal.seconds):
        first = f"see that the operator's pods are ready ({release.look('operator')}), then "
        yield replace(unseen, remedy=f"{first}{unseen.remedy}; kubectl cta doctor tells more")
        return
    gates = [gate["name"] for gate in rehearsal.pod["spec"].get("schedulingGates") or ()]
    if release.gates and GATE_PLACEMENT not in gates:
        yield Finding(
            Severity.ERROR,
            "webhook",
            f"a pod of the resource was rehearsed and came back without the gate {GATE_PLACEMENT}, though placement is "
            "on: no GPU would be chosen for it",
            f"see that every operator pod is of this release ({release.look('operator')}), and which other webhook "
            "takes gates off (kubectl get mutatingwebhookconfigurations)",
        )


def leader_finding(release: Release, lease: Json, first_seen: str | None, now: datetime) -> Finding | None:
    """Return what is wrong when this is the operator's ``lease``, None while somebody renews it.

    It is renewed every other second. Where the clocks of pod and operator differ, ``first_seen`` tells: the time of the
    renewal that was seen first, which is another one by now.
    """
    spec = lease.get("spec") or {}
    renewed, holder = spec.get("renewTime"), spec.get("holderIdentity")
    if holder and renewed and (renewed != (first_seen or renewed) or _is_recent(renewed, now)):
        return None
    told = f"since {renewed} nobody has renewed it" if renewed and holder else "nobody holds it"
    return Finding(
        Severity.ERROR,
        f"lease {lease['metadata']['name']}",
        f"{told}, so no replica of the operator leads: gated pods are not released, quotas not kept",
        f"see why its pods do not come to lead: {release.look('operator')}, and their logs",
    )


def _is_recent(renewed: str, now: datetime) -> bool:
    try:
        return abs((now - datetime.fromisoformat(renewed)).total_seconds()) < _RENEWED_SECONDS
    except (ValueError, TypeError):
        return False


def refusal_finding(subject: str, refused: ApiError, remedy: str) -> Finding:
    """Return what it means that the API server did not do what was asked; ``remedy``: when nothing better is known."""
    if _UNREACHED in str(refused):
        remedy = PATH_REMEDY
    elif not isinstance(refused, (Forbidden, Rejected, NotFound)):
        remedy = "let pods of the release's namespace reach the API server: look for a NetworkPolicy, DNS, a proxy"
    return Finding(Severity.ERROR, subject, str(refused), remedy)


def node_findings(release: Release, published: Mapping[str, Json], machines: Mapping[str, Json]) -> Iterator[Finding]:
    """Yield what is wrong with the nodes. ``published``: CTANodes by name, each of a Node in ``machines``, by name."""
    if not published:
        yield Finding(
            Severity.ERROR,
            "nodes",
            "no node has published its GPUs",
            f"see that GPU nodes have a plugin that runs ({release.look('plugin')}): nodes.selector and "
            "nodes.tolerations of the chart's values must take them in",
        )
        return
    wrong = [found for name in sorted(published) for found in _of_node(release, name, published[name], machines[name])]
    yield from wrong[:_SHOWN_NODES]
    if more := wrong[_SHOWN_NODES:]:
        yield Finding(Severity.ERROR, "nodes", f"{len(more)} more findings", "kubectl cta doctor shows them all")
    if not wrong and not groups_offered(published):
        yield Finding(
            Severity.ERROR,
            "nodes",
            f"none of {len(published)} nodes offers groups",
            "kubectl get ctanodes -o yaml says of each GPU why (withheld, health), and kubectl cta doctor what to do",
        )


def groups_offered(published: Mapping[str, Json]) -> dict[str, int]:
    """Return the groups that each node says it offers; nodes that offer none are absent."""
    told = {name: (node.get("status") or {}).get("allocatable") or 0 for name, node in published.items()}
    return {name: groups for name, groups in told.items() if groups}


def _of_node(release: Release, name: str, published: Json, machine: Json) -> Iterator[Finding]:
    subject, logs = f"node {name}", f"kubectl -n {release.namespace} logs of the plugin's pod there"
    if not published.get("status"):
        yield Finding(Severity.ERROR, subject, "its CTANode has no status yet", logs)
        return
    try:
        status = NodeStatus.model_validate(published["status"])
    except ValidationError as other:
        problem = " ".join(str(other).split())
        yield Finding(
            Severity.ERROR,
            subject,
            f"its CTANode cannot be read: {problem}",
            "let all parts be of one version: helm upgrade",
        )
        return
    if not status.is_of(machine["metadata"]["uid"]) or status.confirmed_at is None:
        yield Finding(Severity.ERROR, subject, "its plugin has not confirmed the CTANode since the node is there", logs)
        return
    yield from _of_conditions(release, subject, status)
    yield from _of_kubelet(release, subject, status, machine)


def _of_conditions(release: Release, subject: str, status: NodeStatus) -> Iterator[Finding]:
    if not status.allocatable:
        return  # a node without a GPU to serve has nothing to register, and is no fault of the release
    for condition in status.conditions:
        if condition.type in _PARTS and condition.status is ConditionStatus.FALSE:
            yield Finding(
                Severity.ERROR,
                subject,
                f"{condition.type} is False, {condition.reason}: {condition.message}",
                f"look at the logs of its pod: {release.look(_PARTS[condition.type])}; kubectl cta doctor tells more",
            )


def _of_kubelet(release: Release, subject: str, status: NodeStatus, machine: Json) -> Iterator[Finding]:
    text = str(machine.get("status", {}).get("allocatable", {}).get(release.resource_name, "0"))
    offered = int(text) if text.isdecimal() else 0
    if offered != status.allocatable:
        yield Finding(
            Severity.ERROR,
            subject,
            f"its kubelet offers {offered} {release.resource_name}, and the plugin {status.allocatable}",
            "look again in a minute; if it stays, delete the plugin's pod there, which registers it again",
        )
