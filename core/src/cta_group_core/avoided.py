"""Nodes that turned out to be impossible for what one controller makes: left out for a while, then tried again.

A pod that was released and that the scheduler could not bind is replaced by its controller. The replacement is as the
pod was, so it would be sent to the same nodes; this remembers not to. Bounded, and forgotten by itself: what was in the
way (cpu taken by others, a neighbour that must not be near) may have gone meanwhile.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cta_group_core.ids import NodeName

AVOIDED_SECONDS: Final = 300.0
"""How long a node is left out."""
KEPT_MOST: Final = 1000
"""Keys that are remembered; the one that was heard of longest ago goes first."""


@dataclass
class Avoided:
    """Nodes by key, with the words of whoever refused them. ``now`` is any clock that does not go back, in seconds."""

    _nodes: dict[Hashable, dict[NodeName, tuple[float, str]]] = field(default_factory=dict)

    def add(self, key: Hashable, nodes: Iterable[NodeName], words: str, now: float) -> None:
        """Leave nodes out for :data:`AVOIDED_SECONDS` from now on."""
        known = self._nodes.pop(key, {})
        known.update((node, (now, words)) for node in nodes)
        self._nodes[key] = known
        while len(self._nodes) > KEPT_MOST:
            del self._nodes[next(iter(self._nodes))]

    def of(self, key: Hashable, now: float) -> Mapping[NodeName, str]:
        """Return what is left out now, with the words; what is over is forgotten."""
        known = self._nodes.get(key)
        if known is None:
            return {}
        current = {node: told for node, told in known.items() if now - told[0] < AVOIDED_SECONDS}
        if current:
            self._nodes[key] = current
        else:
            del self._nodes[key]
        return {node: words for node, (_, words) in current.items()}

    def left_seconds(self, now: float) -> float | None:
        """Return when the first of all nodes that are left out counts again; None while there is none."""
        for key in list(self._nodes):
            self.of(key, now)
        times = [when for known in self._nodes.values() for when, _ in known.values()]
        return AVOIDED_SECONDS - (now - min(times)) if times else None

    def __bool__(self) -> bool:
        """Tell whether anything may be left out: most of the time nothing is."""
        return bool(self._nodes)

    def clear(self) -> None:
        """Forget everything."""
        self._nodes.clear()
