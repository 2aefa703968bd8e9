"""Rounds of placement: each pod is decided with the others counted, and sent once, whatever happens meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from conditions import until
from cta_group_core.ids import NodeName
from cta_group_core.scheduling import PodTerms
from cta_group_operator.clock import SystemClock
from cta_group_operator.errors import Rejected
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.placement import PLAN, Placement
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.settings import Settings
from operator_world import SPACE, FakeClock, FakeKube, a_node, a_pod, a_view, on


@asynccontextmanager
async def running(placement: Placement) -> AsyncIterator[None]:
    """Run plans and releases until the block ends."""
    placement.plans.mark(PLAN)
    tasks = [asyncio.ensure_future(queue.run()) for queue in (placement.plans, placement.releases)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


class SlowClock(FakeClock):
    """A clock by which everything takes time: it moves whenever it is read."""

    def monotonic(self) -> float:
        """Return a later time than before."""
        self.now += 0.01
        return self.now


def a_placement(
    view: ClusterView,
    kube: FakeKube,
    told: list[str],
    clock: Clock | None = None,
    *,
    gateless: str = "",
    metrics: Metrics | None = None,
) -> Placement:
    """Return a placement over that view."""
    return Placement(
        view,
        kube,
        clock or SystemClock(),
        metrics=metrics or Metrics("test"),
        events=EventWriter(kube, FakeClock(), "me"),
        settings=Settings(identity="me", gateless_schedulers=frozenset({gateless} - {""})),
        tell=lambda pod: told.append(pod.ref.name),
    )


async def test_a_pod_whose_scheduler_ignores_gates_gets_no_node() -> None:
    """One that was gated before the setting said so is let go, holds nothing, and no autoscaler is told of it."""
    view, kube, told = a_view(), FakeKube(), list[str]()
    a_node(view, "n1", 128)
    placement = a_placement(view, kube, told, gateless="naive")
    view.pods.put(a_pod("1-naive", 128, scheduler="naive"))
    view.pods.put(a_pod("2-usual", 128))
    async with running(placement):
        await until(lambda: len(kube.writes) == 2, "both releases")
    naive = kube.objects[f"/api/v1/namespaces/{SPACE}/pods/1-naive"]["operations"]
    assert [one["op"] for one in naive] == ["test", "test", "test", "remove"]
    usual = kube.objects[f"/api/v1/namespaces/{SPACE}/pods/2-usual"]["operations"]
    assert "n1" in str(usual)


async def test_one_round_counts_its_own_decisions() -> None:
    """Pods are decided by priority, then age; what one gets the next has not, and who gets nothing is told once."""
    view, kube, told = a_view(), FakeKube(), list[str]()
    a_node(view, "n1", 96)
    placement = a_placement(view, kube, told)
    for pod in (a_pod("1-old", 64), a_pod("2-young", 64), a_pod("3-vip", 64, priority=5)):
        view.pods.put(pod)
    async with running(placement):
        await until(lambda: kube.writes and len(told) == 2, "one release and two refusals")
    assert [path.rpartition("/")[2] for verb, path in kube.writes if verb == "json"] == ["3-vip"]
    assert sorted(told) == ["1-old", "2-young"]
    assert "GPU 0: 32 of 128" in placement.refusals["pod-1-old"]


async def test_a_pod_that_changed_is_decided_again() -> None:
    """When the API server refuses the patch because the pod changed, the newer pod is planned and released."""
    view, kube = a_view(), FakeKube(failures=[Rejected("422: test failed")])
    a_node(view, "n1", 96)
    placement = a_placement(view, kube, [])
    pod = a_pod("p", 64)
    view.pods.put(pod)
    async with running(placement):
        await until(lambda: not kube.failures, "the first patch to be refused")
        view.pods.put(replace(pod, resource_version="2"))
        await until(lambda: kube.writes, "the release")
    ((_, path),) = kube.writes
    tests = {one["path"]: one["value"] for one in kube.objects[path]["operations"] if one["op"] == "test"}
    assert tests["/metadata/resourceVersion"] == "2"


async def test_a_release_that_was_cut_off_is_sent_again() -> None:
    """A promise whose patch was cut off, because the lease was lost, is released when this replica leads again."""
    view, kube = a_view(), FakeKube()
    a_node(view, "n1", 96)
    placement = a_placement(view, kube, [])
    view.pods.put(a_pod("p", 64))
    kube.hold = asyncio.Event()
    async with running(placement):
        await until(lambda: kube.held == 1, "the patch to be on its way")
    kube.hold = None
    placement.resume()
    async with running(placement):
        await until(lambda: kube.writes, "the patch to be sent again")


async def test_pods_that_never_fit_do_not_hide_those_behind_them() -> None:
    """Two hundred pods that each need a look of their own, too many for one round: who comes after them is released."""
    view, kube, clock = a_view(), FakeKube(), SlowClock()
    a_node(view, "n1", 96)
    for number in range(200):
        view.pods.put(a_pod(f"{number:03}", terms=PodTerms(node_selector=(("is", str(number)),))))
    view.pods.put(a_pod("behind", 64))
    placement = a_placement(view, kube, [], clock)
    async with running(placement):
        await until(lambda: kube.writes, "the release of the pod behind them", 60)
        await until(placement.planned.is_set, "everyone to be judged", 60)
    assert [path.rpartition("/")[2] for verb, path in kube.writes if verb == "json"] == ["behind"]
    assert len(placement.refusals) == 200


async def test_a_pod_that_breaks_the_planner_hides_none_behind_it() -> None:
    """A fault of ours costs the pod that meets it, which is told so, and nobody else; everyone counts as judged."""
    view, kube, told, metrics = a_view(), FakeKube(), list[str](), Metrics("test")
    a_node(view, "n1", 96)
    placement = a_placement(view, kube, told, metrics=metrics)
    view.pods.put(a_pod("1-strange", requests=[64]))
    view.pods.put(a_pod("2-usual", 64))
    async with running(placement):
        await until(lambda: kube.writes and placement.planned.is_set(), "the release of the pod behind it")
    assert [path.rpartition("/")[2] for verb, path in kube.writes if verb == "json"] == ["2-usual"]
    assert "a fault of the operator keeps it from being placed" in placement.words["pod-1-strange"]
    assert told == ["1-strange"]
    assert metrics.registry.get_sample_value("cta_group_reconcile_errors_total", {"kind": "placement"}) == 1


async def test_a_gate_that_somebody_else_took_off_is_told() -> None:
    """Who loses the gate without nodes being chosen is told of on the pod; what the operator released is not."""
    view, kube, told = a_view(), FakeKube(), list[str]()
    placement = a_placement(view, kube, told)
    ours, theirs = a_pod("ours"), a_pod("theirs")
    for pod in (ours, theirs):
        view.pods.put(pod)
    view.pods.put(replace(ours, resource_version="2", gates=(), terms=on("n1"), placed_on="n1"))
    view.pods.put(replace(theirs, resource_version="2", gates=()))
    assert told == ["theirs"]
    assert "taken off by somebody other than the operator" in placement.words["pod-theirs"]
    view.pods.put(replace(theirs, resource_version="3", gates=(), node=NodeName("n1")))
    assert not placement.words


async def test_the_time_until_placement_is_told_once_whatever_comes_first() -> None:
    """The watch may show a pod released before its patch is answered: its wait is told all the same, and once."""
    view, kube, metrics = a_view(), FakeKube(), Metrics("test")
    a_node(view, "n1", 96)
    placement = a_placement(view, kube, [], metrics=metrics)
    pod = a_pod("p", 64)
    view.pods.put(pod)
    kube.hold = asyncio.Event()

    def counted(name: str) -> float | None:
        return metrics.registry.get_sample_value(f"cta_group_placement_{name}")

    async with running(placement):
        await until(lambda: kube.held == 1, "the patch to be on its way")
        view.pods.put(replace(pod, resource_version="2", gates=(), terms=on("n1"), placed_on="n1"))
        kube.hold.set()
        await until(lambda: counted("released_total") == 1, "the answer")
    assert counted("seconds_count") == 1
