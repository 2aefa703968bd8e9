"""Stable facts of a CTANode as labels of its node, for selectors. Never a number that changes with load."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from cta_group_core.names import LABEL_GPU_PRODUCT, LABEL_GROUPS_PER_GPU, LABEL_SIMULATED
from cta_group_core.nodes import NodeStatus
from cta_group_operator.errors import NotFound
from cta_group_operator.logs import EventLog
from cta_group_operator.ports import KubeApi, NodeView
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import NODES

_log = EventLog(__name__)

_LABELS: Final = (LABEL_GPU_PRODUCT, LABEL_GROUPS_PER_GPU, LABEL_SIMULATED)
_MOST: Final = 63


class NodeLabeller:
    """One round a node that has a CTANode, or had one."""

    def __init__(self, view: ClusterView, api: KubeApi) -> None:
        self._view = view
        self._api = api
        self._left: set[str] = set()
        """Nodes whose CTANode was deleted and whose labels may still be there. Every replica hears of it."""

    @property
    def to_do(self) -> tuple[str, ...]:
        """Nodes that need a round although they have no CTANode."""
        return tuple(self._left)

    def left(self, name: str) -> None:
        """Take note that a CTANode was deleted. One that was only never seen, or cannot be read, is no such thing."""
        if self._view.nodes.get(name) is not None:  # most go with their Node
            self._left.add(name)

    async def reconcile(self, name: str) -> None:
        """Set the labels that differ, and remove those that do not hold any more."""
        node, cta_node = self._view.nodes.get(name), self._view.cta_nodes.get(name)
        if cta_node is not None:
            node = self._view.machine_of(cta_node)
        if node is not None and (cta_node is not None or name in self._left):
            await self._label(node, labels_of(cta_node.status) if cta_node is not None else {})
        self._left.discard(name)  # done, or its Node is gone by now

    async def _label(self, node: NodeView, wanted: Mapping[str, str]) -> None:
        name = node.facts.name
        changes = {key: wanted.get(key) for key in _LABELS if node.facts.labels.get(key) != wanted.get(key)}
        if not changes:
            return
        try:
            await self._api.merge_patch(NODES.path(name=name), {"metadata": {"labels": changes}})
        except NotFound:
            return
        _log.info("node_labelled", node=name, **{key.rpartition("/")[2]: value for key, value in changes.items()})


def labels_of(status: NodeStatus) -> dict[str, str]:
    """Return the labels of a node. What differs between its GPUs has none."""
    served = [gpu for gpu in status.gpus if gpu.capacity]
    products = {label_value(gpu.product) for gpu in served}
    sizes = {str(gpu.capacity) for gpu in served}
    labels = {LABEL_SIMULATED: "true"} if status.simulated else {}
    if len(products) == 1:
        labels[LABEL_GPU_PRODUCT] = products.pop()
    if len(sizes) == 1:
        labels[LABEL_GROUPS_PER_GPU] = sizes.pop()
    return labels


@lru_cache(maxsize=256)
def label_value(text: str) -> str:
    """Return text in the form that a label's value may have: ``NVIDIA H100 80GB HBM3`` becomes dashes for blanks."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:_MOST].strip("-._")
