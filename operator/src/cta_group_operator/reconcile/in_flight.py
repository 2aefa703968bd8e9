"""What each node has room for, less what was promised: pods released to it that its plugin does not report yet.

Everything is computed afresh from what the API server told, so a restart forgets nothing: a released pod carries its
candidates in its own node affinity. A pod that is neither bound nor pinned (it slipped past the gate) is nobody's
promise.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from cta_group_core.ids import NodeName
from cta_group_core.names import GATE_PLACEMENT
from cta_group_core.node_choice import NodeOffer
from cta_group_core.scheduling import Load, PodTerms
from cta_group_core.selectors import Operator
from cta_group_operator.ports import PodView
from cta_group_operator.reconcile.view import ClusterView


@dataclass(frozen=True, slots=True)
class Promise:
    """A pod that is being released, as decided."""

    pod: PodView
    nodes: tuple[NodeName, ...]


def is_gated(pod: PodView) -> bool:
    """Tell whether the gate of placement is on."""
    return GATE_PLACEMENT in pod.gates


def pinned_nodes(terms: PodTerms) -> tuple[NodeName, ...]:
    """Return the nodes that a pod's own affinity names, over all its terms."""
    named: dict[NodeName, None] = {}
    for term in terms.node_terms or ():
        for one in term.fields:
            if one.operator is Operator.IN:
                named.update(dict.fromkeys(NodeName(value) for value in one.values))
    return tuple(named)


def offers(view: ClusterView, promises: Mapping[str, Promise]) -> dict[NodeName, NodeOffer]:
    """Return every node that publishes a CTANode and exists, with its room, promises and load."""
    found: dict[NodeName, NodeOffer] = {}
    for cta_node in view.cta_nodes:
        node = view.nodes.get(cta_node.name)
        if node is not None:
            found[cta_node.name] = NodeOffer(node.facts, tuple(cta_node.status.rooms()))
    started = {
        (cta_node.name, allocation.namespace, allocation.pod)
        for cta_node in view.cta_nodes
        for gpu in cta_node.status.gpus
        for allocation in gpu.allocations
    }
    for pod in view.pods:
        if not pod.is_over:
            _count(found, pod, promises.get(pod.ref.uid), started)
    return found


def _count(
    found: dict[NodeName, NodeOffer], pod: PodView, promise: Promise | None, started: set[tuple[NodeName, str, str]]
) -> None:
    if pod.node is not None:
        has_started = (pod.node, pod.ref.namespace, pod.ref.name) in started
        # One that is being deleted and holds nothing will not start any more.
        promised = not has_started and not pod.deleting
        add(found, pod, (pod.node,), promised=promised)
    elif is_gated(pod):
        add(found, pod, promise.nodes if promise is not None else (), promised=True)
    else:
        add(found, pod, pinned_nodes(pod.terms), promised=True)


def add(found: dict[NodeName, NodeOffer], pod: PodView, nodes: Iterable[NodeName], *, promised: bool) -> None:
    """Count a pod on each of its nodes."""
    load: Load = pod.terms.load(pod.groups)
    for name in nodes:
        if (offer := found.get(name)) is not None:
            in_flight = (*offer.in_flight, *pod.requests) if promised else offer.in_flight
            found[name] = replace(offer, in_flight=in_flight, load=offer.load + load)
