"""What is wrong with the release itself: its DaemonSets, its operator, its pods."""

from collections.abc import Iterator
from typing import Final

from cta_group_cli.doctor.gather import Facts
from cta_group_cli.doctor_facts import ReleaseWorkload
from cta_group_cli.objects import Pod
from cta_group_cli.observed import waiting_words
from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.names import LABEL_COMPONENT

_NEEDED: Final = {"plugin": "nodes offer no groups", "operator": "quota, placement and explanations stand still"}
_IMAGE_REASONS: Final = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull")


def kinds_findings(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong when the cluster does not know the project's kinds."""
    if not facts.has_kinds:
        yield Finding(
            Severity.ERROR,
            "kinds",
            "this cluster knows no CTANodes, so no node can publish its GPUs, and the operator waits for its kinds",
            "install or upgrade the release with crds.enabled=true, or kubectl apply --server-side -f crds/",
        )


def release_findings(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong with the workloads of the release."""
    if not facts.workloads:
        if not any(entry.startswith("DaemonSets") for entry in facts.unread):
            yield Finding(
                Severity.ERROR,
                "release",
                "no DaemonSet and no Deployment of the chart is in this cluster",
                "helm install cta-group charts/cta-group --namespace cta-group --create-namespace",
            )
        return
    for component, effect in _NEEDED.items():
        if facts.workload(component) is None:
            yield Finding(
                Severity.ERROR,
                component,
                f"it is missing, so {effect}",
                "helm upgrade the release, or helm rollback it",
            )
    if not facts.names:
        yield Finding(
            Severity.ERROR,
            "plugin",
            "no node has a pod of the plugin, and none has published its GPUs",
            "let nodes.selector and nodes.tolerations of the chart's values take the GPU nodes in",
        )
    for workload in facts.workloads:
        yield from _of_workload(workload)


def _of_workload(workload: ReleaseWorkload) -> Iterator[Finding]:
    component = workload.metadata.labels.get(LABEL_COMPONENT, "")
    status = workload.status
    wanted = status.desired_number_scheduled or (workload.spec.replicas if component == "operator" else 0)
    ready = status.number_ready + status.ready_replicas
    name = workload.metadata.full_name
    if component == "operator" and not wanted:
        yield Finding(
            Severity.ERROR,
            name,
            f"it is scaled to no replica, so {_NEEDED['operator']}, and new pods are neither placed nor aligned",
            f"kubectl -n {workload.metadata.namespace} scale deployment {workload.metadata.name} --replicas=2",
        )
    if ready < wanted:
        none = component == "operator" and not ready
        yield Finding(
            Severity.ERROR if none else Severity.WARNING,
            name,
            f"{ready} of {wanted} pods are ready" + (f", so {_NEEDED['operator']}" if none else ""),
            f"kubectl -n {workload.metadata.namespace} get pods -l {LABEL_COMPONENT}={component} -o wide, and describe "
            "those that are not",
        )
    if component == "mps" and status.updated_number_scheduled < status.desired_number_scheduled:
        old = status.desired_number_scheduled - status.updated_number_scheduled
        yield Finding(
            Severity.INFO,
            name,
            f"{old} of {wanted} pods are of an earlier revision: this DaemonSet is never rolled by itself",
            "delete its pod on a node at a quiet moment; daemons with clients are left running and found again",
        )


def pod_findings(facts: Facts, node: str) -> Iterator[Finding]:
    """Yield what keeps the release's pods on one node from running."""
    plugins = facts.pods_of("plugin", node)
    if not plugins and facts.asked_for is not None and facts.workload("plugin") is not None:
        yield Finding(
            Severity.ERROR,
            "plugin",
            "no pod of the plugin is on this node, so it offers no groups",
            "let nodes.selector and nodes.tolerations of the chart's values take this node in: kubectl describe node "
            f"{node} shows its labels and taints",
        )
    for pod in (*plugins, *facts.pods_of("mps", node)):
        if (words := _trouble(pod)) is not None:
            yield Finding(Severity.ERROR, f"pod {pod.metadata.full_name}", words, _pod_remedy(pod, words))


def _trouble(pod: Pod) -> str | None:
    """Return why a pod of the release does not work; None when it does."""
    if words := waiting_words(pod):
        return words
    ready = next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)
    if pod.status.phase == "Running" and ready is not None and ready.status == "True":
        return None
    told = ready.message if ready is not None and ready.message else f"its phase is {pod.status.phase}"
    return f"it is not ready: {told}"


def _pod_remedy(pod: Pod, words: str) -> str:
    if any(reason in words for reason in _IMAGE_REASONS):
        return "set image.repository, image.tag and image.pullSecrets of the chart's values to what this node can pull"
    where = f"-n {pod.metadata.namespace}"
    return f"kubectl {where} describe pod {pod.metadata.name}; kubectl {where} logs {pod.metadata.name}"
