"""Makes up pods: sizes that are allowed most often, init containers and sidecars now and then, whole GPUs too."""

import random
from collections.abc import Sequence

from cta_group_plugin.testing.kubelet_model import Asked, Role
from model_rules import Kind


class PodMaker:
    """What pods on a node with these kinds of GPUs ask for."""

    def __init__(self, chance: random.Random, kinds: Sequence[Kind]) -> None:
        self._chance = chance
        self._kinds = kinds

    def asks(self) -> list[Asked]:
        """Return what the containers of the next pod ask for."""
        kind = self._chance.choice(self._kinds)
        apps = self._chance.choices((1, 2, 3), weights=(8, 2, 1))[0]
        asks = [Asked(f"app-{number}", self._size(kind, several=apps == 1)) for number in range(apps)]
        if self._chance.random() < 0.3:
            asks.insert(0, Asked("sidecar", kind.minimum, Role.SIDECAR))
        if self._chance.random() < 0.35:
            asks.insert(0, Asked("init", self._size(kind, several=False), Role.INIT))
        return asks

    def _size(self, kind: Kind, *, several: bool) -> int:
        if several and self._chance.random() < 0.15:
            return kind.capacity * self._chance.choice((1, 2, 2, 3))
        if self._chance.random() < 0.05:
            return self._chance.randrange(1, kind.capacity)
        most = kind.capacity // kind.step
        return kind.step * self._chance.randint(kind.minimum // kind.step, max(kind.minimum // kind.step, most // 2))
