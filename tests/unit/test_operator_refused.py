"""Refused pods are counted, told and taken away, one stays to be looked at, and the next one waits."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from conditions import until
from cta_group_core.ids import NodeName
from cta_group_core.refusals import Cause
from cta_group_operator.errors import ApiUnavailable, Forbidden
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.refused import RefusedPods
from cta_group_operator.reconcile.view import ClusterView
from operator_world import SPACE, FakeClock, FakeKube, a_controller, a_pod, a_view, ref

REPLICA_SET = ref("ReplicaSet", "web-1")
WORDS = "UnexpectedAdmissionError: no GPU has room"


@dataclass
class World:
    """A view with a Deployment of one ReplicaSet, and what looks after its refused pods."""

    view: ClusterView
    kube: FakeKube
    clock: FakeClock
    metrics: Metrics
    refused: RefusedPods

    @classmethod
    def make(cls, *, keep: bool = False, kube: FakeKube | None = None) -> "World":
        """Return one in which nothing was refused."""
        view, kube, clock, metrics = a_view(), kube or FakeKube(), FakeClock(), Metrics("test")
        owner = ref("Deployment", "web")
        view.controllers["Deployment"].put(a_controller("Deployment", "web"))
        view.controllers["ReplicaSet"].put(a_controller("ReplicaSet", "web-1", owner=owner))
        events = EventWriter(kube, clock, "me")
        return cls(
            view, kube, clock, metrics, RefusedPods(view, kube, clock, metrics=metrics, events=events, keep=keep)
        )

    def fail(self, name: str, **changes: Any) -> PodView:
        """Have a kubelet refuse a pod; without other ``changes`` one of the ReplicaSet."""
        known: dict[str, Any] = {"owner": REPLICA_SET, "refused": Cause.ROOM, "words": WORDS} | changes
        pod = a_pod(name, gates=(), node=NodeName("n1"), phase="Failed", **known)
        self.kube.objects[self.path(name)] = {"metadata": {}}
        self.view.pods.put(pod)
        return pod

    def look_again(self) -> None:
        """Have it look now: it sleeps by another clock than the one that is set."""
        self.refused.queue.rest()
        self.refused.queue.wake()
        self.refused.mark_everything()

    def path(self, name: str) -> str:
        """Return the path of a pod."""
        return f"/api/v1/namespaces/{SPACE}/pods/{name}"

    def next_pod(self) -> PodView:
        """Return the pod that the ReplicaSet makes next."""
        return a_pod("next", owner=REPLICA_SET)

    def counted(self, cause: Cause = Cause.ROOM) -> float | None:
        """Return what the metric says."""
        return self.metrics.registry.get_sample_value("cta_group_refused_pods_total", {"cause": cause.value})

    def told(self) -> list[dict[str, Any]]:
        """Return the events."""
        return [one for path, one in self.kube.objects.items() if "/events/" in path]

    @property
    def deleted(self) -> list[str]:
        """Names of the pods that were deleted."""
        return [path.rpartition("/")[2] for verb, path in self.kube.writes if verb == "delete"]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work on what was marked."""
        task = asyncio.ensure_future(self.refused.queue.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_of_a_controllers_pods_the_newest_stays_for_a_while() -> None:
    """Each is counted, the Deployment is told once, the older go at once and the newest a minute later."""
    world = World.make()
    for number in range(5):
        world.fail(f"pod-{number}")
    async with world.running():
        await until(lambda: len(world.deleted) == 4, "four deletions")
        assert world.deleted == ["pod-0", "pod-1", "pod-2", "pod-3"]
        assert world.counted() == 5
        (event,) = world.told()
        assert event["involvedObject"]["kind"] == "Deployment"
        assert event["message"] == f"node n1 refused pod pod-0, which asks for 32 groups: {WORDS}"
        world.view.pods.replace([pod for pod in world.view.pods if pod.ref.name == "pod-4"], "100")
        world.clock.now += 61
        world.look_again()
        await until(lambda: "pod-4" in world.deleted, "the last deletion")
    assert world.counted() == 5


async def test_which_one_is_the_newest_is_not_a_matter_of_names() -> None:
    """Two that were made in the same second: the one that was refused later stays."""
    world = World.make()
    world.fail("z-first", created="2026-01-01T00:00:00Z")
    async with world.running():
        await until(lambda: world.counted() == 1, "the first to be counted")
        world.clock.now += 2
        world.fail("a-second", created="2026-01-01T00:00:00Z")
        await until(lambda: world.deleted, "a deletion")
    assert world.deleted == ["z-first"]


async def test_a_pod_of_its_own_stays() -> None:
    """Nobody makes it again, so it does not pile up, and whoever made it wants to read why."""
    world = World.make()
    world.fail("alone", owner=None)
    world.fail("other")
    world.fail("younger")
    async with world.running():
        await until(lambda: world.deleted, "a deletion of the controller's")
        await until(lambda: world.counted() == 3, "all to be counted")
        await until(lambda: world.refused.queue.is_idle, "the rest of the work")
    assert world.deleted == ["other"]
    assert {event["involvedObject"]["kind"] for event in world.told()} == {"Deployment", "Pod"}


async def test_pods_that_failed_otherwise_are_left_alone() -> None:
    """A pod that ended, was evicted or was refused for its cpu is not ours to delete."""
    world = World.make()
    for number in range(3):
        world.fail(f"pod-{number}", refused=None)
    world.refused.mark_everything()
    assert world.refused.queue.is_idle
    assert world.refused.wait_of(world.next_pod()) == 0
    assert world.counted() == 0


async def test_kept_where_people_want_them() -> None:
    """With the setting nothing is deleted; they are counted and told all the same, and the next one waits."""
    world = World.make(keep=True)
    world.fail("a")
    world.fail("b")
    assert world.refused.wait_of(world.next_pod()) == 5
    async with world.running():
        await until(lambda: world.counted() == 2 and world.told(), "both to be counted")
        await until(lambda: world.refused.queue.is_idle, "the rest of the work")
    assert world.deleted == []


def test_the_next_pod_waits_longer_each_time() -> None:
    """Five seconds after the first refusal, twenty after the second, and what is told says so with the numbers."""
    world = World.make()
    following = world.next_pod()
    assert (world.refused.wait_of(following), world.refused.words_for(following)) == (0, "")
    world.fail("a")
    assert world.refused.words_for(following) == (
        f"the one before it was refused by its node ({WORDS}); tried again 5 s after that"
    )
    world.clock.now += 5
    assert (world.refused.wait_of(following), world.refused.words_for(following)) == (0, "")
    world.fail("b")
    assert world.refused.wait_of(following) == 20
    assert world.refused.words_for(following) == (
        f"the one before it was refused by its node 2 times in a row ({WORDS}); tried again 20 s after that"
    )
    assert world.refused.wait_of(a_pod("stranger", owner=ref("ReplicaSet", "other"))) == 0
    assert world.refused.wait_of(a_pod("alone")) == 0


def test_news_of_a_pod_that_was_refused_are_no_further_refusal() -> None:
    """A failed pod that changes (a label, a finalizer) does not make the next one wait longer."""
    world = World.make()
    pod = world.fail("a")
    world.clock.now += 4
    world.view.pods.put(replace(pod, resource_version="2"))
    assert world.refused.wait_of(world.next_pod()) == 1


async def test_a_pod_that_changed_is_looked_at_again() -> None:
    """A deletion that comes too late is no error: what changed comes through the watch."""
    world = World.make()
    world.fail("a")
    world.fail("b")
    del world.kube.objects[world.path("a")]
    async with world.running():
        await until(lambda: world.counted() == 2, "both to be counted")
        await until(lambda: world.refused.queue.is_idle, "the rest of the work")
    errors = world.metrics.registry.get_sample_value("cta_group_reconcile_errors_total", {"kind": "refused"})
    assert errors == 0


async def test_a_pod_that_cannot_be_deleted_stops_nobody() -> None:
    """One that a policy guards stays; those behind it go, and it is tried again."""
    world = World.make()
    for number in range(4):
        world.fail(f"pod-{number}")
    world.kube.broken[world.path("pod-0")] = Forbidden("403")
    async with world.running():
        await until(lambda: world.deleted == ["pod-1", "pod-2"], "the deletions of the others")
        errors = ("cta_group_reconcile_errors_total", {"kind": "refused"})
        await until(lambda: world.metrics.registry.get_sample_value(*errors) == 1, "the round to be repeated later")
        world.kube.broken.clear()
        world.clock.now += 1
        world.look_again()
        await until(lambda: "pod-0" in world.deleted, "the deletion of the guarded one")
    assert world.counted() == 4


class SlowEvents(FakeKube):
    """Takes events only when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.waits = 0

    async def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Wait for the gate."""
        self.waits += 1
        await self.gate.wait()
        return await super().create(path, body)


async def test_pods_that_go_while_others_are_told_of_leave_nothing_behind() -> None:
    """All pods of a controller vanish during its round: each was counted, nothing breaks, nothing stays in memory."""
    kube = SlowEvents()
    world = World.make(kube=kube)
    for number in range(3):
        world.fail(f"pod-{number}")
    async with world.running():
        await until(lambda: kube.waits == 1, "the first event")
        world.view.pods.replace([], "100")
        kube.gate.set()
        await until(lambda: world.counted() == 3, "all to be counted")
        await until(lambda: world.refused.queue.is_idle, "the rest of the work")
    assert world.refused._counted == {}
    errors = world.metrics.registry.get_sample_value("cta_group_reconcile_errors_total", {"kind": "refused"})
    assert errors == 0


async def test_a_refusal_is_told_though_its_event_had_to_wait() -> None:
    """A pod is counted once, so its event is kept until the API server takes it."""
    world = World.make()
    world.kube.broken["/events/"] = ApiUnavailable("away")
    world.fail("pod")
    async with world.running():
        await until(lambda: world.counted() == 1, "it to be counted")
        await until(lambda: world.refused.queue.is_idle, "the rest of the work")
    assert world.told() == []
    world.kube.broken.clear()
    await world.refused._events.send_again()
    assert [event["reason"] for event in world.told()] == ["RefusedByNode"]
