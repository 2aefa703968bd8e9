"""Which kinds of GPU a pod can land on, from the CTANodes that are known; the memory of its slice on each follows."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from cta_group_core.ids import NodeName
from cta_group_core.scheduling import NodeFacts, PodTerms, names_objection
from cta_group_core.scheduling import NodeTerm as Alternative
from cta_group_core.selectors import Operator, Requirement
from cta_group_core.vllm.gpu import GpuKind, kinds_of
from cta_group_operator.admission.pod import Expression, NodeTerm, Spec
from cta_group_operator.ports import CtaNodeView

NodeLabels = Callable[[NodeName], Mapping[str, str] | None]
"""Returns a node's labels; None when the node is not known."""


class SliceFacts(Protocol):
    """What admission must know of the cluster's GPUs."""

    def kinds(self, spec: Spec) -> Collection[GpuKind]:
        """Return the kinds of GPU on nodes that such a pod can land on; empty when none is known."""


class KnownGpus:
    """Follows CTANodes and answers from memory, so that a pod's creation never waits for the API server.

    Changes come from one thread, questions may from another.
    """

    def __init__(self, labels: NodeLabels = lambda _: None) -> None:
        self._labels = labels
        self._by_node: dict[NodeName, frozenset[GpuKind]] = {}
        self._all: frozenset[GpuKind] = frozenset()

    def follow(self, before: CtaNodeView | None, after: CtaNodeView | None) -> None:
        """Take a difference; a listener of the store of CTANodes."""
        if before is not None and after is None:
            self._by_node.pop(before.name, None)
        if after is not None:
            found = kinds_of(after.status)
            if found == self._by_node.get(after.name):
                return
            self._by_node[after.name] = found
        self._all = _union(self._by_node.values())

    def kinds(self, spec: Spec) -> Collection[GpuKind]:
        """Return the kinds on nodes that the pod's selector, affinity and node name allow.

        A node whose labels are not known may have those that are asked for.
        """
        if spec.node_name:
            return self._by_node.get(NodeName(spec.node_name), frozenset())
        terms = _terms_of(spec)
        if not terms.node_selector and terms.node_terms is None:
            return self._all
        known = tuple(self._by_node.items())  # in one step: it changes meanwhile, in another thread
        return _union(kinds for name, kinds in known if self._may_take(name, terms))

    def _may_take(self, name: NodeName, terms: PodTerms) -> bool:
        labels = self._labels(name)
        return labels is None or names_objection(terms, NodeFacts(name, labels)) is None


def _terms_of(spec: Spec) -> PodTerms:
    """Return what the pod asks of a node; affinity that cannot be read, which the API server refuses, asks nothing."""
    required = spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None
    try:
        node_terms = None if required is None else tuple(map(_term, required.node_selector_terms or ()))
    except ValueError:
        node_terms = None
    return PodTerms(tuple((spec.node_selector or {}).items()), node_terms)


def _term(term: NodeTerm) -> Alternative:
    return Alternative(_requirements(term.match_expressions), _requirements(term.match_fields))


def _requirements(expressions: Iterable[Expression] | None) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(key=one.key, operator=Operator(one.operator), values=tuple(one.values or ()))
        for one in expressions or ()
    )


def _union(many: Iterable[frozenset[GpuKind]]) -> frozenset[GpuKind]:
    return frozenset().union(*many)
