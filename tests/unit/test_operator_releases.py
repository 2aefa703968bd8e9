"""Releases that the API server does not take: held back, told, their room given to others unless it may be taken."""

import asyncio
from dataclasses import replace

import pytest

from conditions import until
from cta_group_core.ids import NodeName
from cta_group_operator.clock import SystemClock
from cta_group_operator.errors import ApiError, ApiUnavailable, Conflict, Forbidden, Rejected
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.placement import Placement
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.settings import Settings
from operator_world import SPACE, FakeClock, FakeKube, a_node, a_pod, a_view, on
from placement_running import running

POLICY = Forbidden("403: denied by a policy of the team")


def path_of(name: str) -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{SPACE}/pods/{name}"


class World:
    """A node with room for one pod of 64, and pods that wait."""

    def __init__(self, *pods: str, clock: FakeClock | None = None) -> None:
        self.view: ClusterView = a_view()
        self.kube, self.metrics, self.told = FakeKube(), Metrics("test"), list[str]()
        a_node(self.view, "n1", 64)
        self.placement = Placement(
            self.view,
            self.kube,
            clock or SystemClock(),
            metrics=self.metrics,
            events=EventWriter(self.kube, FakeClock(), "me"),
            settings=Settings(identity="me"),
            tell=lambda pod: self.told.append(pod.ref.name),
        )
        for name in pods:
            self.add(a_pod(name, 64))

    def add(self, pod: PodView) -> None:
        """Put a pod into the view and into the API server."""
        metadata = {"uid": pod.ref.uid, "resourceVersion": pod.resource_version}
        self.kube.objects[path_of(pod.ref.name)] = {"metadata": metadata}
        self.view.pods.put(pod)

    @property
    def released(self) -> list[str]:
        """Names of the pods whose patch was taken."""
        return [path.rpartition("/")[2] for verb, path in self.kube.writes if verb == "json"]

    @property
    def promised(self) -> set[str]:
        """Pods that hold room, by uid."""
        return set(self.placement._releases.promises)

    @property
    def known(self) -> list[str]:
        """Everything that is kept of single pods, by uid."""
        releases = self.placement._releases
        kept = (releases.promises, releases.words, releases._held, releases._unanswered, releases._outdated)
        return [uid for one in kept for uid in one]

    def failures(self, cause: str) -> float:
        """Return how many patches failed so."""
        name = "cta_group_placement_release_failures_total"
        return self.metrics.registry.get_sample_value(name, {"cause": cause}) or 0.0

    def events(self, reason: str) -> list[str]:
        """Return the messages of the events of that reason."""
        return [one["message"] for one in self.kube.objects.values() if one.get("reason") == reason]


@pytest.mark.parametrize("failure", [POLICY, Rejected("422: spec is invalid"), ApiUnavailable("500: webhook broke")])
async def test_a_pod_that_cannot_be_released_gives_its_room_to_others(failure: ApiError) -> None:
    """It is told on the pod, in the explanation and by a metric, and the pod behind it gets the room."""
    world = World("1-guarded", "2-behind")
    world.kube.broken[path_of("1-guarded")] = failure
    async with running(world.placement):
        await until(lambda: world.released, "the release of the pod behind it")
    assert world.released == ["2-behind"]
    assert "pod-1-guarded" not in world.promised
    told = world.placement.held["pod-1-guarded"]
    assert told.startswith("the API server does not let the operator take its scheduling gate off: ")
    assert str(failure) in told
    assert "1-guarded" in world.told
    (event,) = world.events("ReleaseRefused")
    assert str(failure) in event
    assert sum(world.failures(cause) for cause in ("forbidden", "rejected", "unavailable")) >= 1


async def test_it_is_tried_less_and_less() -> None:
    """After one second, then two, four and so on to a minute: by a clock that stands still there is one attempt."""
    clock = FakeClock()
    world = World("p", clock=clock)
    world.kube.broken[path_of("p")] = POLICY
    pod = a_pod("p", 64)
    waits = []
    async with running(world.placement):
        for number in range(1, 10):
            await until(lambda: world.failures("forbidden") >= number, f"attempt {number}")  # noqa: B023 - awaited here
            await until(lambda: world.placement._releases.wait_of(pod) > 0, "the pod to be held back")
            waits.append(world.placement._releases.wait_of(pod))
            clock.now += waits[-1]
            world.placement.plans.mark("plan")
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert len(world.events("ReleaseRefused")) == 1


async def test_once_it_is_let_go_nothing_is_told_any_more() -> None:
    """A policy that was mended: the next attempt releases the pod, and the reason goes."""
    clock = FakeClock()
    world = World("p", clock=clock)
    world.kube.broken[path_of("p")] = POLICY
    async with running(world.placement):
        await until(lambda: world.placement.held, "the refusal")
        world.kube.broken.clear()
        clock.now += 1
        world.placement.plans.mark("plan")
        await until(lambda: world.released, "the release")
    assert not world.placement.held
    assert world.told.count("p") >= 2


async def test_a_pod_that_is_gone_leaves_nothing() -> None:
    """What was known of a pod that could not be released goes with it."""
    world = World("p")
    world.kube.broken[path_of("p")] = POLICY
    async with running(world.placement):
        await until(lambda: world.placement.held, "the refusal")
        world.view.pods.remove((SPACE, "p"))
        await until(lambda: world.placement.plans.is_idle, "the plan after that")
    assert not world.known


async def test_a_pod_that_goes_while_it_is_released_leaves_nothing() -> None:
    """No answer comes to its patch: nobody would forget that it was missed."""
    world = World("p")
    world.kube.hold = asyncio.Event()
    async with running(world.placement):
        await until(lambda: world.kube.held == 1, "the patch to be on its way")
        world.kube.broken[path_of("p")] = ApiUnavailable("away")
        world.view.pods.remove((SPACE, "p"))
        world.kube.hold.set()
        await until(lambda: all(queue.is_idle for queue in world.placement.queues.values()), "all to be done")
    assert not world.known


async def test_what_may_have_been_released_keeps_its_room_until_the_watch_tells() -> None:
    """A patch whose answer was lost had arrived, so the next fails its test: nobody else gets the room meanwhile."""
    world = World("1-first", "2-second")
    first = world.view.pods.get("1-first", SPACE)
    assert first is not None
    world.kube.objects[path_of("1-first")]["metadata"]["resourceVersion"] = "2"
    world.kube.failures = [Rejected("422: test failed")]
    async with running(world.placement):
        await until(lambda: world.failures("changed") == 1, "the look at the pod")
        await until(lambda: "pod-2-second" in world.placement.refusals, "the second to find no room")
        assert world.promised == {"pod-1-first"}
        world.view.pods.put(replace(first, resource_version="2", gates=(), terms=on("n1"), placed_on="n1"))
        await until(lambda: not world.promised, "the promise to be over")
    assert world.released == []
    assert not world.placement.held


@pytest.mark.parametrize("failure", [Conflict("409: newer"), Rejected("422: test failed")])
async def test_a_pod_that_changed_while_it_was_released_is_decided_again(failure: ApiError) -> None:
    """The watch brings what it is now, before the look at it or after; nothing is told."""
    world = World("p")
    pod = world.view.pods.get("p", SPACE)
    assert pod is not None
    world.kube.objects[path_of("p")]["metadata"]["resourceVersion"] = "2"
    world.kube.failures = [failure]
    async with running(world.placement):
        await until(lambda: world.failures("changed") == 1, "the look at the pod")
        world.view.pods.put(replace(pod, resource_version="2"))
        await until(lambda: world.released, "the release")
    assert not world.placement.held
    assert world.events("ReleaseRefused") == []


async def test_an_api_server_that_is_away_for_a_moment_is_asked_again() -> None:
    """One answer that is missing says nothing about the pod: its room is kept, and the same patch is sent again."""
    world = World("p")
    world.kube.failures = [ApiUnavailable("away")] * 3
    async with running(world.placement):
        await until(lambda: world.released, "the release")
    assert not world.placement.held
    assert world.failures("unavailable") == 3


async def test_while_the_pod_cannot_be_looked_at_its_room_is_kept() -> None:
    """An API server that answers nothing may have released it; what became of it is asked again."""
    world = World("1-first", "2-second")
    world.kube.failures = [Forbidden("403"), ApiUnavailable("away")]
    world.kube.hold = asyncio.Event()
    async with running(world.placement):
        await until(lambda: world.kube.held == 1, "the second patch of the first pod")
        assert world.promised == {"pod-1-first"}
        world.kube.hold.set()
        await until(lambda: world.released, "the release")
    assert world.released == ["1-first"]


async def test_one_of_the_same_name_is_another() -> None:
    """A pod that was deleted and made again under its name is not taken for the one that was promised."""
    world = World("p")
    pod = world.view.pods.get("p", SPACE)
    assert pod is not None
    again = replace(pod, ref=replace(pod.ref, uid="again"), resource_version="1")
    world.kube.objects[path_of("p")]["metadata"]["uid"] = "again"
    world.kube.failures = [Rejected("422: test failed")]
    async with running(world.placement):
        await until(lambda: world.failures("changed") == 1, "the look at the pod")
        world.view.pods.put(again)
        await until(lambda: world.released, "the release of the other")
    assert not world.placement.held


async def test_who_gets_its_node_from_somebody_else_is_not_held_any_more() -> None:
    """A person takes the gate off that the operator could not: what was known of it is forgotten."""
    world = World("p")
    pod = world.view.pods.get("p", SPACE)
    assert pod is not None
    world.kube.broken[path_of("p")] = POLICY
    async with running(world.placement):
        await until(lambda: world.placement.held, "the refusal")
        world.view.pods.put(replace(pod, resource_version="2", gates=(), node=NodeName("n1")))
        assert not world.placement.held
