"""What placement costs in a large cluster: a snapshot of what every node has room for, and each decision over it."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cta_group_core.ids import NodeName
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_core.node_choice import NodeOffer, refusal, safe_nodes
from cta_group_core.nodes import NodeStatus
from cta_group_core.scheduling import NodeFacts, PodTerms
from cta_group_operator.ports import CtaNodeView, NodeView, ObjectRef, PodView
from cta_group_operator.reconcile.in_flight import Snapshots
from cta_group_operator.reconcile.view import ClusterView
from figures import Figures
from gpu_cluster import CAPACITY, h100, held
from operator_world import FakeClock

_GPUS_OF_A_NODE = 8
_SIZES = (8, 16, 32, 64, 96, 128, 256)
_TOO_LARGE = 1024
"""Groups of a whole node: with something on every node nothing has room for it."""
_TERMS = PodTerms(cpu_milli=4000, memory_bytes=2**35)
_CHANGES_OF_A_ROUND = 4
_DECISIONS_OF_A_ROUND = 10
_SECONDS_OF_A_ROUND = 1.0
Result = TypeVar("Result")


@dataclass
class _World:
    """Nodes that are half full, with pods on their way to a third of them."""

    nodes: int
    chance: random.Random
    view: ClusterView = field(default_factory=ClusterView)
    clock: FakeClock = field(default_factory=FakeClock)
    told: int = 0
    """The newest resourceVersion."""

    def __post_init__(self) -> None:
        """Make all of it."""
        self.snapshots = Snapshots(self.view, self.clock, None, lambda _: False)
        for number in range(self.nodes):
            name = NodeName(f"node-{number:04}")
            groups = CAPACITY * _GPUS_OF_A_NODE
            facts = NodeFacts(name, cpu_milli=192_000, memory_bytes=2**41, pods=250, groups=groups)
            self.view.nodes.put(NodeView(facts, self.version()))
            self.publish(number)
            for place in range(self.chance.randrange(3) if self.chance.random() < 0.5 else 0):  # noqa: PLR2004 - half
                self.bind(f"going-{number:04}-{place}", number, 8)

    def version(self) -> str:
        """Return the next resourceVersion."""
        self.told += 1
        return str(self.told)

    def bind(self, name: str, number: int, groups: int) -> None:
        """Let a pod be bound."""
        ref = ObjectRef("v1", "Pod", "bench", name, f"uid-{name}")
        node = NodeName(f"node-{number:04}")
        self.view.pods.put(PodView(ref, self.version(), (groups,), node=node, terms=_TERMS))

    def publish(self, number: int) -> None:
        """Let the plugin of a node tell who holds what."""
        name, chance = f"node-{number:04}", self.chance
        free = [chance.choice((0, 0, 8, 24, 32, 64, 96, 128)) for _ in range(_GPUS_OF_A_NODE)]
        free[0] = min(free[0], 120)  # nowhere is a whole node free
        gpus = []
        for index, room in enumerate(free):
            pod = f"held-{number:04}-{index}"
            if room < CAPACITY:
                self.bind(pod, number, CAPACITY - room)
            gpus.append(h100(name, index, [held(CAPACITY - room, pod, "bench")] if room < CAPACITY else []))
        status = NodeStatus(resource_name=DEFAULT_RESOURCE_NAME, simulated=True, gpus=tuple(gpus)).with_totals()
        self.view.cta_nodes.put(CtaNodeView(NodeName(name), self.version(), status))

    def go_on(self) -> None:
        """Let some time pass, in which some nodes' plugins tell something else and some pods are told anew."""
        self.clock.now += _SECONDS_OF_A_ROUND
        for _ in range(_CHANGES_OF_A_ROUND):
            self.publish(self.chance.randrange(self.nodes))
        for pod in self.chance.sample(tuple(self.view.pods), _CHANGES_OF_A_ROUND):
            self.view.pods.put(replace(pod, resource_version=self.version()))


def decide(figures: Figures, nodes: int, decisions: int, seed: int) -> None:
    """Decide about pods of mixed sizes, some a round, while the cluster changes between the rounds.

    The very first round counts and looks at everything and is told apart.
    """
    chance = random.Random(seed)  # noqa: S311 - a load, no secret
    world = _World(nodes, chance)
    offers = _first_round(figures, world)
    for _ in range(decisions // _DECISIONS_OF_A_ROUND):
        world.go_on()
        offers = _timed(figures, "placement_snapshot", lambda: world.snapshots.now({}).all())
        for _ in range(_DECISIONS_OF_A_ROUND):
            _decide(figures, "placement_decision", chance.choice(_SIZES), offers)
    words = _timed(figures, "placement_refusal_words", lambda: refusal(_TERMS, (_TOO_LARGE,), offers))
    if str(_TOO_LARGE) not in str(words):
        raise AssertionError(words)


def _first_round(figures: Figures, world: _World) -> list[NodeOffer]:
    offers = _timed(figures, "placement_first_snapshot", lambda: world.snapshots.now({}).all())
    _decide(figures, "placement_first_decision", _SIZES[0], offers)
    return offers


def _decide(figures: Figures, name: str, groups: int, offers: list[NodeOffer]) -> None:
    if not _timed(figures, name, lambda: safe_nodes(_TERMS, (groups,), offers)):
        raise AssertionError(f"nothing has room for {groups}")


def _timed(figures: Figures, name: str, work: Callable[[], Result]) -> Result:
    """Do something and add what it took, of the clock and of the processor."""
    since, processor_since = time.perf_counter(), time.thread_time()
    result = work()
    taken, processor = time.perf_counter() - since, time.thread_time() - processor_since
    figures.add(f"{name}_ms", taken * 1000)
    figures.add(f"{name}_cpu_ms", processor * 1000)
    return result
