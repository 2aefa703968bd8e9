"""Placement's answer to one pod as tests look at it: the nodes, or the refusal as an error."""

from collections.abc import Collection, Sequence

from cta_group_core.ids import NodeName
from cta_group_core.node_choice import NodeOffer, refusal, safe_nodes
from cta_group_core.scheduling import PodTerms


def choose_nodes(pod: PodTerms, requests: Sequence[int], offers: Collection[NodeOffer]) -> tuple[NodeName, ...]:
    """Return the nodes that the pod would be released to, best first; raise RequestRefused where there is none."""
    nodes = safe_nodes(pod, requests, offers)
    if not nodes:
        raise refusal(pod, requests, offers)
    return nodes
