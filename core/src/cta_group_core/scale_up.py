"""Whether a pod that finds no room may be shown to the cluster's autoscaler: released without a node.

An autoscaler adds a node for pods that the scheduler calls unschedulable, and does not see gated ones. Released so, a
pod goes wherever the scheduler finds enough groups in sum, or can find them by evicting pods of a lower priority. So it
is shown only while no node has that: otherwise the scheduler would bind it where its groups lie on several GPUs, and
the plugin would refuse it, when others were evicted for it perhaps.
"""

from collections.abc import Callable, Sequence

from cta_group_core.ids import NodeName
from cta_group_core.node_choice import NodeOffer, judge
from cta_group_core.scheduling import Load, PodTerms, objection


def why_not_shown(
    pod: PodTerms,
    requests: Sequence[int],
    offers: Sequence[NodeOffer],
    evictable: Callable[[NodeName], int] = lambda _: 0,
) -> str:
    """Return why the autoscaler does not see the pod; empty when it may be released without a node.

    ``evictable``: groups that pods of a node have which the scheduler would evict for this one.
    """
    verdicts = [judge(pod, requests, offer) for offer in offers]
    in_question = [one for one in verdicts if one.has_gpu]
    if in_question and not any(one.ever for one in in_question):
        return "not shown to the autoscaler: no GPU of this kind could take it even if it were empty"
    asked = sum(requests)
    for offer in offers:
        left = offer.facts.groups - offer.load.groups
        if left >= asked and objection(pod, offer.facts, offer.load) is None:
            return (
                f"not shown to the autoscaler: the scheduler would bind it to {offer.facts.name}, which has {left} "
                "groups left on several GPUs"
            )
        name, lower = offer.facts.name, evictable(offer.facts.name)
        if lower and left + lower >= asked and objection(pod, offer.facts, Load()) is None:
            return (
                f"not shown to the autoscaler: the scheduler would evict pods of a lower priority on {name} for it, "
                "whose groups may lie on several GPUs; with a PriorityClass of preemptionPolicy: Never it is shown"
            )
    return ""
