"""Which pods are on which node, and which on none: followed as they change, since a decision concerns few of many."""

from collections import defaultdict

from cta_group_core.ids import NodeName
from cta_group_operator.ports import PodView
from cta_group_operator.store import Store


class PodPlaces:
    """Follows the pods of a store, also those that have ended."""

    def __init__(self, pods: Store[PodView]) -> None:
        self._on: defaultdict[NodeName, dict[str, PodView]] = defaultdict(dict)
        self._nowhere: dict[str, PodView] = {}
        self._changes = 0
        self._states: dict[NodeName, int] = {}
        pods.subscribe(self._changed)

    def on(self, node: NodeName) -> tuple[PodView, ...]:
        """Return the pods that are bound to a node."""
        return tuple(self._on.get(node, {}).values())

    def nowhere(self) -> tuple[PodView, ...]:
        """Return the pods that are bound to no node."""
        return tuple(self._nowhere.values())

    def state_of(self, node: NodeName) -> int:
        """Return a number that is another one when something about the pods on a node is."""
        return self._states.get(node, 0)

    def _changed(self, before: PodView | None, after: PodView | None) -> None:
        if before is not None:
            self._take_away(before)
        if after is not None:
            self._put(after)

    def _put(self, pod: PodView) -> None:
        if pod.node is None:
            self._nowhere[pod.ref.uid] = pod
            return
        self._on[pod.node][pod.ref.uid] = pod
        self._changes += 1
        self._states[pod.node] = self._changes

    def _take_away(self, pod: PodView) -> None:
        if pod.node is None:
            self._nowhere.pop(pod.ref.uid, None)
            return
        there = self._on[pod.node]
        there.pop(pod.ref.uid, None)
        self._changes += 1
        self._states[pod.node] = self._changes
        if not there:
            del self._on[pod.node], self._states[pod.node]
