"""What GPUs hold for pods that should be gone, and what a CTAQuota says of it: Kubernetes charges nobody for them."""

from dataclasses import replace
from typing import Any

import pytest

from cta_group_core.ids import NodeName
from cta_group_core.nodes import Allocation, Condition, NodeStatus
from cta_group_core.quota import CONDITION_UNCHARGED, QuotaStatus
from cta_group_core.scheduling import TAINT_UNREACHABLE, Taint
from cta_group_operator.metrics import Metrics
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.quota import QuotaReconciler
from cta_group_operator.reconcile.quota_marks import QuotaMarks
from cta_group_operator.reconcile.view import ClusterView
from operator_world import READ_LIMIT, RESOURCE, FakeClock, FakeKube, a_limit, a_node, a_pod, a_quota, a_view

STATUS = "/apis/ctagroup.dev/v1alpha1/ctaquotas/q/status"
BEFORE, AFTER = "2026-01-01T00:00:00Z", "2026-01-01T23:00:00Z"
NODE = NodeName("n")


class World:
    """One quota of 64 over ``team-a``, one node of one H100, and the pods and holders that a test puts there."""

    def __init__(self, *holders: str, used: int) -> None:
        self.view: ClusterView = a_view()
        self.kube = FakeKube()
        self.again: float | None = None
        """When the last round wanted another."""
        self._version = 10
        self.view.quotas.put(a_quota("q", 64, "team-a"))
        self.charge(used)
        tenants = [self._held(name) for name in holders]
        a_node(self.view, NODE, 128 - 32 * len(holders), tenants=tenants)
        self._quotas = QuotaReconciler(
            self.view,
            self.kube,
            FakeClock(),
            metrics=Metrics("test"),
            events=EventWriter(self.kube, FakeClock(), "me"),
            denials=Denials(self.view, RESOURCE),
            read_limit=READ_LIMIT,
            resource_name=RESOURCE,
        )

    def charge(self, used: int) -> None:
        """Have kube-controller-manager count ``used``."""
        self.view.limits.put(replace(a_limit("team-a", "q", 64, used=used), resource_version=self._next()))

    def pod(self, name: str, **changes: Any) -> None:
        """Put a running pod of 32 on the node."""
        facts = {"node": NODE, "gates": (), "phase": "Running", "resource_version": self._next(), **changes}
        self.view.pods.put(a_pod(name, 32, **facts))

    def lose_node(self, *, lost: bool = True) -> None:
        """Have Kubernetes hear of the node no longer, or again."""
        node = self.view.nodes.get(NODE)
        assert node is not None
        taints = (Taint(TAINT_UNREACHABLE, "", "NoExecute"),) if lost else ()
        facts = replace(node.facts, taints=taints)
        self.view.nodes.put(replace(node, facts=facts, resource_version=self._next()))

    def report(self, *holders: str) -> None:
        """Have the node's plugin tell who holds something."""
        node = self.view.cta_nodes.get(NODE)
        assert node is not None
        held = {"free": 128 - 32 * len(holders), "allocations": tuple(map(self._held, holders))}
        gpus = (node.status.gpus[0].model_copy(update=held),)
        status = NodeStatus(resource_name=RESOURCE, gpus=gpus)
        self.view.cta_nodes.put(replace(node, status=status, resource_version=self._next()))

    async def told(self) -> tuple[int, Condition]:
        """Have a round, and return what the status says."""
        self.again = await self._quotas.reconcile("q")
        quota = self.view.quotas.get("q")
        assert quota is not None
        status = QuotaStatus.model_validate(self.kube.objects[STATUS]["status"])
        self.view.quotas.put(replace(quota, status=status, resource_version=self._next()))
        (condition,) = [one for one in status.conditions if one.type == CONDITION_UNCHARGED]
        return status.uncharged, condition

    def _held(self, name: str) -> Allocation:
        return Allocation(namespace="team-a", pod=name, container="main", groups=32, memory_mib=1)

    def _next(self) -> str:
        self._version += 1
        return str(self._version)


async def test_a_pod_whose_grace_is_over_is_told_once_nobody_is_charged_for_it() -> None:
    """While Kubernetes still charges it nothing is missing; afterwards the number, the pod and the node are told."""
    world = World("web", used=32)
    world.pod("web", deleting=True, ends=BEFORE)
    world.lose_node()
    assert (await world.told())[0] == 0
    world.charge(0)
    groups, condition = await world.told()
    assert (groups, condition.status, condition.reason) == (32, "True", "HeldByGonePods")
    assert "32 groups that used leaves out (32 by pod web of team-a on n, which is not heard of)" in condition.message


async def test_its_successor_that_waits_is_no_reason_to_tell_less() -> None:
    """The quota is full again by what came in place of the pod: still that is not charged for the one that went."""
    world = World("web", used=32)
    world.pod("web", deleting=True, ends=BEFORE)
    world.view.pods.put(a_pod("next", 32))
    assert (await world.told())[0] == 32


async def test_a_successor_that_is_seen_after_its_charge_is_not_missed() -> None:
    """Pods and charges are watched apart, so somebody looks again for as long as a pod that should be gone holds."""
    world = World("web", used=64)
    world.pod("stays")
    world.pod("web", deleting=True, ends=BEFORE)
    assert ((await world.told())[0], world.again) == (0, 5.0)
    world.view.pods.put(a_pod("next", 32))
    assert ((await world.told())[0], world.again) == (32, 5.0)
    world.view.pods.remove(("team-a", "web"))
    assert ((await world.told())[0], world.again) == (0, None)


async def test_the_end_of_a_grace_is_looked_at() -> None:
    """Nothing happens in the cluster at that moment, least of all on a lost node."""
    world = World("web", used=32)
    world.pod("web", deleting=True, ends="2026-01-01T00:17:10Z")
    assert ((await world.told())[0], world.again) == (0, 30.0)


@pytest.mark.parametrize(
    ("changes", "used"),
    [
        ({"deleting": True, "ends": AFTER}, 0),  # its grace goes on, so the count is what lags
        ({}, 0),  # nobody deleted it: the watch of the quota is behind
        ({"deleting": True, "ends": BEFORE}, 64),  # something else is charged too much
    ],
)
async def test_a_count_that_is_behind_is_not_told(changes: dict[str, Any], used: int) -> None:
    """Only pods that should be gone are left out for good."""
    world = World("web", used=used)
    world.pod("web", **changes)
    groups, condition = await world.told()
    assert (groups, condition.status, condition.message) == (0, "False", "")


async def test_one_that_holds_nothing_is_not_told() -> None:
    """A pod that was deleted before it started holds no groups, whatever becomes of its object."""
    world = World(used=0)
    world.pod("web", deleting=True, ends=BEFORE)
    assert (await world.told())[0] == 0


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_pod_that_was_removed_by_force_is_told_while_its_node_is_lost(*, elsewhere: bool) -> None:
    """No object is left, or one of that name on another node: the lost node's GPU holds what it held."""
    world = World("web", used=32 * elsewhere)
    if elsewhere:
        world.pod("web", node=NodeName("other"))
    assert (await world.told())[0] == 0  # the plugin will tell in a moment
    world.lose_node()
    assert (await world.told())[0] == 32
    world.lose_node(lost=False)
    assert (await world.told())[0] == 0


async def test_a_node_that_is_gone_holds_nothing() -> None:
    """What the CTANode of a removed Node says is not believed."""
    world = World("web", used=0)
    world.lose_node()
    world.view.nodes.remove(("", NODE))
    assert (await world.told())[0] == 0


async def test_who_must_look_when_what_is_held_changes() -> None:
    """A node that is lost or comes back, a pod that is gone at last, and a report of what nobody was charged for."""
    world = World("web", used=0)
    clock, metrics = FakeClock(), Metrics("test")

    async def nothing(key: str) -> None:
        del key

    queue = WorkQueue[str]("quota", nothing, clock=clock, metrics=metrics)
    QuotaMarks(world.view, Denials(world.view, RESOURCE), queue)

    async def marked() -> int:
        depth = queue.depth
        queue.rest()
        queue.wake()
        return depth

    world.pod("web", deleting=True, ends=BEFORE)
    assert await marked() == 1
    world.lose_node()
    assert await marked() == 1
    world.pod("stays")
    world.report("stays")
    assert await marked() == 0
    world.view.pods.remove(("team-a", "stays"))
    world.report("web", "other")
    assert await marked() == 1
    assert (await world.told())[0] == 64
    await marked()
    world.report("other")
    assert await marked() == 1
    world.view.pods.remove(("team-a", "web"))
    assert await marked() == 1
    world.lose_node(lost=False)
    assert await marked() == 1
