"""What time alone changes about waiting pods, whatever else happens meanwhile: on a clock that does not wait."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from cta_group_core.avoided import AVOIDED_SECONDS
from cta_group_core.turn import KEEP_AFTER_SECONDS, KEEP_SECONDS
from cta_group_operator.metrics import Metrics
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.placement import Placement
from cta_group_operator.reconcile.unclaimed import UNCLAIMED_SECONDS
from cta_group_operator.settings import Settings
from operator_world import FakeKube, a_node, a_pod, a_view, on, ref
from placement_running import running
from virtual_time import VirtualClock, run_in_virtual_time

PODS = "/api/v1/namespaces/team-a/pods/"
OWNER = ref("ReplicaSet", "web-1")


class World:
    """A placement over nodes of H100s, in virtual time."""

    def __init__(self, *free: int) -> None:
        """Begin with one node ``n1`` whose GPUs have these free groups."""
        self.view, self.kube, self.told = a_view(), FakeKube(), list[str]()
        a_node(self.view, "n1", *free)
        clock = VirtualClock()
        self.placement = Placement(
            self.view,
            self.kube,
            clock,
            settings=Settings(identity="me"),
            metrics=Metrics("test"),
            events=EventWriter(self.kube, clock, "me"),
            tell=lambda pod: self.told.append(pod.ref.name),
        )

    @property
    def released(self) -> list[str]:
        """Names of the pods whose gate was taken off."""
        return [path.rpartition("/")[2] for verb, path in self.kube.writes if verb == "json"]

    async def released_at(self, name: str, *, by: float) -> float:
        """Return at which second a pod was released; raises AssertionError when it was not by then."""
        while name not in self.released:
            assert asyncio.get_running_loop().time() <= by, f"{name} is not released after {by} s"
            await asyncio.sleep(1)
        return asyncio.get_running_loop().time()

    def something_happens(self) -> None:
        """Let a pod come and go that nobody has room for, so that there is another round."""
        self.view.pods.put(a_pod("passes-by", 2048))
        self.view.pods.remove(("team-a", "passes-by"))


def in_virtual_time(story: Callable[[World], Coroutine[Any, Any, None]], *free: int) -> None:
    """Tell a story while placement runs."""

    async def told() -> None:
        world = World(*free)
        async with running(world.placement):
            await story(world)

    run_in_virtual_time(told())


def test_room_that_no_scheduler_claims_comes_free_in_time() -> None:
    """A pod that another scheduler does not take keeps no room after five minutes, and its workload is told so."""

    async def story(world: World) -> None:
        world.view.pods.put(a_pod("unclaimed", 64, gates=(), terms=on("n1"), scheduler="batch"))
        world.view.pods.put(a_pod("waits", 64))
        await asyncio.sleep(10)
        world.something_happens()
        await asyncio.sleep(UNCLAIMED_SECONDS - 20)
        assert "unclaimed" not in world.told
        at = await world.released_at("waits", by=UNCLAIMED_SECONDS + 2)
        assert at >= UNCLAIMED_SECONDS
        assert "unclaimed" in world.told

    in_virtual_time(story, 64)


def test_a_new_leader_knows_how_long_nobody_claimed_a_pod() -> None:
    """Every replica hears of such a pod, so the five minutes do not begin anew with each leader."""

    async def story() -> None:
        world = World(64)
        world.view.pods.put(a_pod("unclaimed", 64, gates=(), terms=on("n1"), scheduler="batch"))
        world.view.pods.put(a_pod("waits", 64))
        await asyncio.sleep(UNCLAIMED_SECONDS - 50)
        async with running(world.placement):
            await world.released_at("waits", by=UNCLAIMED_SECONDS + 2)

    run_in_virtual_time(story())


def test_a_node_that_was_left_out_counts_again_in_time() -> None:
    """Where the only node was tried, the next pod goes there after five minutes, whatever was planned till then."""

    async def story(world: World) -> None:
        world.kube.objects[f"{PODS}first"] = {"metadata": {}}
        stuck = {"gates": (), "terms": on("n1"), "placed_on": "n1", "unschedulable": True, "words": "no cpu"}
        world.view.pods.put(a_pod("first", 64, owner=OWNER, **stuck))
        while ("delete", f"{PODS}first") not in world.kube.writes:  # noqa: ASYNC110 - virtual time has to be let pass
            await asyncio.sleep(1)
        deleted = asyncio.get_running_loop().time()
        world.view.pods.remove(("team-a", "first"))
        world.view.pods.put(a_pod("second", 64, owner=OWNER))
        await asyncio.sleep(10)
        assert "tried, and the scheduler said: no cpu" in world.placement.refusals["pod-second"]
        world.something_happens()
        at = await world.released_at("second", by=deleted + AVOIDED_SECONDS + 2)
        assert at >= deleted + AVOIDED_SECONDS - 1

    in_virtual_time(story, 64)


def test_room_is_kept_for_a_pod_that_has_waited_long() -> None:
    """Small pods that came later do not take the room that a large one waits for; they take other room."""

    async def story(world: World) -> None:
        world.view.pods.put(a_pod("large", 96))
        await asyncio.sleep(KEEP_AFTER_SECONDS + 1)
        for number in range(3):
            world.view.pods.put(a_pod(f"small-{number}", 32))
        await asyncio.sleep(5)
        assert world.released == ["small-0"]
        assert "GPU 1 with 64 free is kept for team-a/large" in world.placement.refusals["pod-small-1"]
        assert "is kept" not in world.placement.refusals["pod-large"]
        assert world.placement.room_kept == 1

    in_virtual_time(story, 32, 64)


def test_kept_room_is_given_back_when_its_turn_ends() -> None:
    """When nothing is kept any more the next pod is released at once, though nothing else happens by then."""

    async def story(world: World) -> None:
        world.view.pods.put(a_pod("large", 96))
        await asyncio.sleep(KEEP_AFTER_SECONDS + 100)
        world.view.pods.put(a_pod("small", 64))
        at = await world.released_at("small", by=KEEP_AFTER_SECONDS + KEEP_SECONDS + 2)
        assert at >= KEEP_AFTER_SECONDS + KEEP_SECONDS

    in_virtual_time(story, 64)


def test_who_was_held_back_by_others_has_not_waited_for_room() -> None:
    """However long ago a pod was created, room is kept for it five minutes after it first found none."""

    async def story(world: World) -> None:
        gates = ("example.com/theirs", "ctagroup.dev/placement")
        large = a_pod("large", 96, created="2025-01-01T00:00:00Z", gates=gates)
        world.view.pods.put(large)
        await asyncio.sleep(2 * KEEP_AFTER_SECONDS)
        world.view.pods.put(replace(large, resource_version="2", gates=gates[1:]))
        world.view.pods.put(a_pod("small", 64))
        await world.released_at("small", by=2 * KEEP_AFTER_SECONDS + 5)

    in_virtual_time(story, 64)


def test_a_new_leader_keeps_room_after_it_has_refused_for_as_long() -> None:
    """What a leader before has seen of a pod's wait is not known to the next one."""

    async def story() -> None:
        world = World(64)
        world.view.pods.put(a_pod("large", 96))
        async with running(world.placement):
            await asyncio.sleep(KEEP_AFTER_SECONDS - 1)
        world.placement.forget()
        async with running(world.placement):
            await asyncio.sleep(10)
            world.view.pods.put(a_pod("small", 64))
            await world.released_at("small", by=KEEP_AFTER_SECONDS + 20)

    run_in_virtual_time(story())
