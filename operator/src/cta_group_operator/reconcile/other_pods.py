"""What pods that ask for no groups take of the nodes with GPUs: counted when all of them are listed, now and then.

They are not followed, since a cluster may have tens of thousands. So this is a minute old, and only says which nodes
had better be left alone: a pod that no other node takes is released there all the same, and the scheduler knows.
"""

from collections.abc import Mapping

from cta_group_core.ids import NodeName
from cta_group_core.scheduling import Load


class OtherPods:
    """The last count."""

    def __init__(self) -> None:
        self._loads: dict[NodeName, Load] = {}

    def of(self, node: NodeName) -> Load:
        """Return what they take of a node: the same object as long as it is the same."""
        return self._loads.get(node, _NOTHING)

    def replace(self, counted: Mapping[NodeName, Load]) -> None:
        """Take a new count."""
        self._loads = {name: kept if (kept := self.of(name)) == load else load for name, load in counted.items()}

    def clear(self) -> None:
        """Forget the count, which nobody keeps up to date any more."""
        self._loads.clear()


_NOTHING = Load()
