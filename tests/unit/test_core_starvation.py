"""A large pod behind an endless stream of small ones, in a small world in steps: kept room is what lets it in."""

from dataclasses import dataclass, field

from cta_group_core.arrival import arrive
from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.kept_room import keepable, without
from cta_group_core.node_choice import NodeOffer, safe_nodes
from cta_group_core.rooms import GpuRoom
from cta_group_core.scheduling import NodeFacts, PodTerms
from cta_group_core.turn import KEEP_AFTER_SECONDS, KEEP_SECONDS, in_turn, kept_one, may_keep
from cta_group_core.units import GpuUnits

H100 = GpuUnits(sm_count=132, capacity=128, minimum=8, step=8)
POD = PodTerms()
STEP_SECONDS = 60
LARGE, SMALL = 96, 32
LIVES_STEPS = 8


@dataclass
class World:
    """Two GPUs of one node that small pods fill; each ends after some steps, and another has come before."""

    now: int = 0
    waiting: list[tuple[int, int]] = field(default_factory=list)
    """When each came, and what it asks for."""
    running: list[tuple[int, str, int]] = field(default_factory=list)
    """When each ends, on which GPU, and what it holds."""

    def offer(self) -> NodeOffer:
        """Return the node as it is now."""
        free = {f"GPU-{index}": 128 for index in range(2)}
        for _, gpu, groups in self.running:
            free[gpu] -= groups
        rooms = tuple(GpuRoom(GpuUuid(gpu), index, H100, left) for index, (gpu, left) in enumerate(free.items()))
        return NodeOffer(NodeFacts(NodeName("n"), pods=100, groups=256), rooms)

    def step(self, *, keeps: bool) -> None:
        """Let a step pass: pods end, a small one comes, and everyone who waits is decided in turn."""
        self.now += 1
        self.running = [one for one in self.running if one[0] > self.now]
        self.waiting.append((self.now, SMALL))
        kept = None
        for came, groups in in_turn(self.waiting, priority=lambda _: 0, created=lambda one: one[0]):
            here = self.offer()
            if safe_nodes(POD, (groups,), [without(here, kept, "large") if kept else here]):
                self.start(here, came, groups)
            elif keeps and kept is None and may_keep(waited := (self.now - came) * STEP_SECONDS):
                kept = kept_one(keepable(POD, (groups,), [here]), waited)

    def start(self, here: NodeOffer, came: int, groups: int) -> None:
        """Let a pod start where the plugin puts it."""
        after = arrive(here.rooms, groups)
        (gpu,) = (new.uuid for old, new in zip(here.rooms, after, strict=True) if new.free < old.free)
        self.running.append((self.now + LIVES_STEPS, gpu, groups))
        self.waiting.remove((came, groups))


def steps_until_large_runs(*, keeps: bool, most: int = 200) -> int | None:
    """Return after how many steps the large pod runs in a world that was full when it came; None: not by then."""
    world = World()
    for _ in range(LIVES_STEPS):
        world.step(keeps=keeps)
    world.waiting.append((world.now, LARGE))
    for step in range(most):
        world.step(keeps=keeps)
        if any(groups == LARGE for _, _, groups in world.running):
            return step + 1
    return None


def test_without_kept_room_it_starves() -> None:
    """Whatever ends is taken by the next small pod before there is enough for the large one."""
    assert steps_until_large_runs(keeps=False) is None


def test_with_kept_room_it_runs_within_the_life_of_the_small_ones() -> None:
    """It waits its time, then as long as those on the kept GPU live."""
    steps = steps_until_large_runs(keeps=True)
    assert steps is not None
    assert steps * STEP_SECONDS <= KEEP_AFTER_SECONDS + KEEP_SECONDS
