"""Pods that are being deleted and that a quota is charged for until they are gone. Pure reads of the view."""

from cta_group_core.ending_pods import EndingPod
from cta_group_operator.ports import LimitView, PodView
from cta_group_operator.reconcile.view import ClusterView


def ending_pods(limit: LimitView, view: ClusterView) -> list[EndingPod]:
    """Return those of one namespace. What Kubernetes charges no longer, as on a lost node, cannot come back."""
    pods = view.pods_in(limit.ref.namespace)
    left_out = sum(pod.groups for pod in pods) - limit.used if limit.used is not None else 0
    found = []
    for pod in sorted((pod for pod in pods if pod.deleting), key=lambda pod: (pod.ends, pod.ref.name)):
        if pod.groups <= left_out:
            left_out -= pod.groups
        else:
            found.append(EndingPod(pod.ref.name, pod.groups, pod.ends, lost_node=_lost_node(pod, view)))
    return found


def _lost_node(pod: PodView, view: ClusterView) -> str:
    node = view.nodes.get(pod.node) if pod.node is not None else None
    return node.facts.name if node is not None and not node.facts.is_heard_of else ""
