"""Pods that are being deleted and that a quota is charged for until they are gone. Pure reads of the view."""

from cta_group_core.ending_pods import EndingPod
from cta_group_operator.ports import LimitView, PodView
from cta_group_operator.reconcile.view import ClusterView


def charged_ending(limit: LimitView, view: ClusterView) -> list[PodView]:
    """Return those of one namespace, by when they end.

    What Kubernetes charges no longer, as on a lost node, cannot come back: its quota has it already.
    """
    pods = view.pods_in(limit.ref.namespace)
    left_out = sum(pod.groups for pod in pods) - limit.used if limit.used is not None else 0
    found = []
    for pod in sorted((pod for pod in pods if pod.deleting), key=lambda pod: (pod.ends, pod.ref.name)):
        if pod.groups <= left_out:
            left_out -= pod.groups
        else:
            found.append(pod)
    return found


def ending_pods(limit: LimitView, view: ClusterView) -> list[EndingPod]:
    """Return them as they are told to people."""
    return [ending_pod(pod, view) for pod in charged_ending(limit, view)]


def ending_pod(pod: PodView, view: ClusterView) -> EndingPod:
    """Return one pod that is being deleted as it is told to people."""
    return EndingPod(pod.ref.name, pod.groups, pod.ends, lost_node=lost_node_of(pod, view))


def lost_node_of(pod: PodView, view: ClusterView) -> str:
    """Return the node of a pod where Kubernetes does not hear of it; else nothing."""
    node = view.nodes.get(pod.node) if pod.node is not None else None
    return node.facts.name if node is not None and not node.facts.is_heard_of else ""
