"""What a plugin said long ago is believed as far as it can still be so."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from conditions import until
from cta_group_core.ids import NodeName
from cta_group_core.nodes import Allocation, Condition, ConditionStatus
from cta_group_core.scheduling import Taint
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import CtaNodeView, PodView
from cta_group_operator.reconcile.in_flight import Offers
from cta_group_operator.reconcile.stale import StaleNodes
from cta_group_operator.reconcile.view import ClusterView
from operator_world import SPACE, FakeClock, FakeKube, a_node, a_pod, a_view

STALE_SECONDS = 900
NOW = 1000.0
UNREACHABLE = Taint("node.kubernetes.io/unreachable", "", "NoSchedule")


def held(pod: str, groups: int) -> Allocation:
    """Return what a pod of the usual namespace holds."""
    return Allocation(namespace=SPACE, pod=pod, container="c", groups=groups, memory_mib=1)


@dataclass
class World:
    """One node, n1, with one GPU, and what judges its age."""

    view: ClusterView = field(default_factory=a_view)
    kube: FakeKube = field(default_factory=FakeKube)
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOW))
    gone: set[tuple[str, str]] = field(default_factory=set)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stale = StaleNodes(
            self.view,
            self.kube,
            self.clock,
            metrics=Metrics("test"),
            stale_seconds=STALE_SECONDS,
            is_gone=lambda namespace, name: (namespace, name) in self.gone,
            became=lambda: self.told.append("became"),
        )

    def publish(self, confirmed_at: str | None, *tenants: Allocation, conditions: Sequence[Condition] = ()) -> None:
        """Have the plugin write; the API server's numbers count on."""
        version = int(node.resource_version) + 1 if (node := self.view.cta_nodes.get("n1")) else 1
        free = 128 - sum(one.groups for one in tenants)
        scratch = a_view()
        a_node(scratch, "n1", free, tenants=tenants)
        if self.view.nodes.get("n1") is None:
            self.view.nodes.put(next(iter(scratch.nodes)))
        status = next(iter(scratch.cta_nodes)).status
        update = {"confirmed_at": confirmed_at, "conditions": tuple(conditions)}
        self.view.cta_nodes.put(CtaNodeView(NodeName("n1"), str(version), status.model_copy(update=update)))

    @property
    def node(self) -> CtaNodeView:
        """The CTANode."""
        found = self.view.cta_nodes.get("n1")
        assert found is not None
        return found

    def free(self) -> int:
        """Return what placement takes for free on the GPU."""
        (offer,) = Offers(self.view, {}, self.stale.room_of).all()
        (room,) = offer.rooms
        return room.free

    def taint(self, *taints: Taint) -> None:
        """Replace the taints of the node."""
        (node,) = self.view.nodes
        version = str(int(node.resource_version) + 1)
        self.view.nodes.put(replace(node, resource_version=version, facts=replace(node.facts, taints=taints)))


def runs(name: str, node: str = "n1") -> PodView:
    """Return a pod that runs."""
    return a_pod(name, 96, gates=(), node=NodeName(node), phase="Running")


def at(seconds: float) -> str:
    """Return a moment by the clock that the tests set."""
    return FakeClock(seconds).utc_text()


def test_a_plugin_that_goes_on_confirming_is_never_stale() -> None:
    """Each confirmation counts from when it is heard of, whatever the other machine's clock says."""
    world = World()
    world.publish(at(NOW))
    for number in range(5):
        world.clock.now += STALE_SECONDS - 1
        assert not world.stale.is_stale(world.node)
        world.publish(f"2020-01-01T00:0{number}:00Z")
    world.clock.now += STALE_SECONDS
    assert world.stale.is_stale(world.node)
    assert world.stale.count == 1


def test_an_operator_that_starts_goes_by_the_two_clocks() -> None:
    """What was old already when this process saw it first is stale at once; a clock that is ahead makes nothing so."""
    old, ahead, recent = World(), World(), World()
    old.publish(at(NOW - STALE_SECONDS))
    ahead.publish("2030-01-01T00:00:00Z")
    recent.publish(at(NOW - STALE_SECONDS + 1))
    assert [world.stale.is_stale(world.node) for world in (old, ahead, recent)] == [True, False, False]


@pytest.mark.parametrize("confirmed_at", [None, "yesterday"])
def test_a_plugin_that_does_not_say_when_is_believed(confirmed_at: str | None) -> None:
    """An earlier version confirms nothing, and a text that is no moment makes nothing old at first sight."""
    world = World()
    world.publish(confirmed_at)
    assert not world.stale.is_stale(world.node)


def test_a_stale_full_gpu_is_not_full_for_ever() -> None:
    """Holders that the API server knows no more, that ended, or that are elsewhere now do not count."""
    for after in (None, replace(runs("p"), phase="Succeeded"), runs("p", "n2"), a_pod("p", 96)):
        world = World()
        world.publish(at(NOW - STALE_SECONDS), held("p", 96))
        if after is None:
            assert world.free() == 32, "nobody asked the API server yet"
            world.gone.add((SPACE, "p"))
        else:
            world.view.pods.put(after)
        assert world.free() == 128


def test_a_stale_node_whose_holders_live_is_as_it_says() -> None:
    """A pod that is there and bound there holds what it holds, also while it is being deleted."""
    for pod in (runs("p"), replace(runs("p"), deleting=True)):
        world = World()
        world.publish(at(NOW - STALE_SECONDS), held("p", 96))
        world.view.pods.put(pod)
        assert world.free() == 32


def test_what_is_fresh_is_the_nodes_truth() -> None:
    """While the plugin reports, a pod that is gone from the API may run on, and kubelet knows better."""
    world = World()
    world.publish(at(NOW), held("p", 96))
    world.gone.add((SPACE, "p"))
    assert world.free() == 32


def test_on_a_node_that_is_not_heard_of_everything_is_still_held() -> None:
    """Its containers may run on, whatever was deleted here; when it is back, what is gone does not count."""
    world = World()
    world.publish(at(NOW - STALE_SECONDS), held("p", 96))
    world.gone.add((SPACE, "p"))
    world.taint(UNREACHABLE)
    assert world.free() == 32
    world.taint()
    assert world.free() == 128


def test_pods_that_came_since_are_counted() -> None:
    """A pod that is bound and that the stale CTANode does not name holds its room."""
    world = World()
    world.publish(at(NOW - STALE_SECONDS))
    world.view.pods.put(runs("later"))
    (offer,) = Offers(world.view, {}, world.stale.room_of).all()
    assert offer.in_flight == (96,)
    assert offer.remark == f"its plugin has not reported since {at(NOW - STALE_SECONDS)}"


async def test_it_is_said_on_the_object_once_and_taken_back() -> None:
    """The condition appears when the age is reached, beside those of the plugin, and turns when the plugin is back."""
    world = World()
    registered = Condition(type="Registered", status=ConditionStatus.TRUE, reason="Registered")
    world.publish(at(NOW - STALE_SECONDS), conditions=(registered,))
    running = asyncio.ensure_future(world.stale.queue.run())
    path = "/apis/ctagroup.dev/v1alpha1/ctanodes/n1/status"
    await until(lambda: world.told, "the news")
    (_, operation) = world.kube.objects[path]["operations"]
    assert (operation["op"], operation["path"]) == ("add", "/status/conditions/-")
    assert (operation["value"]["status"], operation["value"]["reason"]) == ("False", "PluginSilent")
    silent = Condition.model_validate(operation["value"])
    world.publish(at(NOW - STALE_SECONDS), conditions=(registered, silent))
    await until(lambda: world.stale.queue.is_idle, "it to be looked at")
    assert len(world.kube.writes) == 1
    world.publish(at(NOW), conditions=(registered, silent))
    await until(lambda: len(world.told) == 2, "the news that it is back")
    (_, operation) = world.kube.objects[path]["operations"]
    assert (operation["op"], operation["path"]) == ("replace", "/status/conditions/1")
    assert operation["value"]["status"] == "True"
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_nothing_is_said_of_a_node_that_was_never_stale() -> None:
    """No condition is added where there is nothing to take back."""
    world = World()
    world.publish(at(NOW))
    running = asyncio.ensure_future(world.stale.queue.run())
    await until(lambda: world.stale.queue.is_idle, "it to be looked at")
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    written: list[Any] = world.kube.writes
    assert written == []
