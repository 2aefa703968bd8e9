"""Which kinds of GPU a pod can land on, from the CTANodes that are known; the memory of its slice on each follows."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from cta_group_core.ids import NodeName
from cta_group_core.vllm.gpu import GpuKind, kinds_of
from cta_group_operator.ports import CtaNodeView

NodeLabels = Callable[[NodeName], Mapping[str, str] | None]
"""Returns a node's labels; None when the node is not known."""


class SliceFacts(Protocol):
    """What admission must know of the cluster's GPUs."""

    def kinds(self, node_selector: Mapping[str, str]) -> Collection[GpuKind]:
        """Return the kinds of GPU on nodes that a pod with this selector can land on; empty when none is known."""


class KnownGpus:
    """Follows CTANodes and answers from memory, so that a pod's creation never waits for the API server."""

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

    def kinds(self, node_selector: Mapping[str, str]) -> Collection[GpuKind]:
        """Return the kinds on nodes with the labels that are asked for; a node without known labels may have them."""
        if not node_selector:
            return self._all
        return _union(kinds for name, kinds in self._by_node.items() if _matches(node_selector, self._labels(name)))


def _matches(selector: Mapping[str, str], labels: Mapping[str, str] | None) -> bool:
    return labels is None or all(labels.get(key) == value for key, value in selector.items())


def _union(many: Iterable[frozenset[GpuKind]]) -> frozenset[GpuKind]:
    return frozenset().union(*many)
