"""The watch over latency budgets: what it reads, when it tells, and what it forgets."""

from dataclasses import replace
from itertools import pairwise

import pytest

from budget_world import DEPLOYMENT, LOOK_SECONDS, REPLICA_SET, BudgetWorld, a_budget
from cta_group_core.budget.objectives import Measure
from cta_group_core.budget.report import BudgetReport
from cta_group_core.budget.target import Served
from cta_group_core.nodes import ConditionStatus
from cta_group_core.workload import WorkloadStatus
from cta_group_operator.ports import ObjectRef, WorkloadView
from cta_group_operator.reconcile.budget_pods import MOST_PODS, budget_of
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.workload import WorkloadReconciler
from operator_world import RESOURCE, SPACE, FakeKube, FakeServers, a_controller, a_pod, ref

PATH = f"/apis/ctagroup.dev/v1alpha1/namespaces/{SPACE}/ctaworkloads/deployment-web/status"


def reported(world: BudgetWorld) -> BudgetReport:
    """Return what is told of the Deployment."""
    report = world.watch.report(DEPLOYMENT)
    assert report is not None
    return report


def answer(world: BudgetWorld) -> tuple[str, str]:
    """Return status and reason."""
    condition = reported(world).condition
    return condition.status.value, condition.reason


def an_explainer(world: BudgetWorld, kube: FakeKube) -> WorkloadReconciler:
    """Return who writes the CTAWorkload."""
    return WorkloadReconciler(
        world.view,
        kube,
        world.clock,
        events=EventWriter(kube, world.clock, "me"),
        denials=Denials(world.view, RESOURCE),
        refusals={},
        servers=FakeServers(),
        look_again=lambda *_: None,
        budgets=world.watch,
    )


async def test_a_budget_is_kept_and_broken() -> None:
    """Two looks and enough requests make an answer; one that turns is told, with numbers and advice."""
    world = BudgetWorld()
    server = world.start()
    await world.look()
    assert answer(world) == ("Unknown", "Measuring")
    server.observe(Measure.TTFT, 0.2, times=50)
    await world.look()
    assert answer(world) == ("True", "BudgetKept")
    (measured,) = reported(world).status.measured
    assert (measured.name, measured.limit_microseconds, measured.observations) == ("ttft-p95", 400_000, 50)
    assert measured.observed_microseconds == 242_500
    assert "ttft-p95 is about 242ms (between 100ms and 250ms; limit 400ms)" in reported(world).condition.message
    server.observe(Measure.TTFT, 0.9, times=500)
    await world.look(10)
    assert answer(world) == ("False", "BudgetExceeded")
    assert reported(world).status.recommended_groups == 64
    assert world.told == [DEPLOYMENT] * 3


async def test_numbers_that_hardly_move_are_not_told() -> None:
    """A server that idles is looked at for ten minutes without a word, until nothing is left to judge."""
    world = BudgetWorld()
    server = world.start()
    await world.look()
    server.observe(Measure.TTFT, 0.09, times=100)
    await world.look()
    before = len(world.told)
    await world.look(18)
    assert len(world.told) == before
    await world.look(4)
    assert len(world.told) == before + 1
    assert answer(world) == ("Unknown", "TooFewRequests")


async def test_a_latency_that_swings_around_its_limit_is_not_told_each_time() -> None:
    """Writes are ten looks apart whatever the latency does."""
    world = BudgetWorld()
    world.declare(a_budget("ttft-p50=400ms"))
    server = world.start()
    await world.look()
    answers = []
    for number in range(60):
        server.observe(Measure.TTFT, 0.2 if number % 2 else 0.9, times=10 * (number + 1))
        await world.look()
        answers += [figures.kept for figures in world.watch.figures()]
    assert sum(before is not after for before, after in pairwise(answers)) > 30
    assert len(world.told) <= 2 + 60 // 10


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [("fast", "InvalidBudget", "has not the form"), ("ttft=1s,ttft=2s", "InvalidBudget", "twice")],
)
async def test_a_wrong_budget_is_told_and_nobody_is_asked(text: str, reason: str, said: str) -> None:
    """The condition says what is wrong with the annotation."""
    world = BudgetWorld()
    world.start()
    world.declare(a_budget(text))
    await world.look()
    assert answer(world) == ("Unknown", reason)
    assert said in reported(world).condition.message
    assert world.servers.asked == []


async def test_why_nothing_is_read_is_told() -> None:
    """No pod, no port, no answer: each is a reason of its own."""
    world = BudgetWorld()
    await world.look()
    assert answer(world) == ("Unknown", "NotServing")
    world.start()
    world.declare(replace(a_budget("ttft=1s"), served=Served(None, "no container looks like vLLM")))
    await world.look()
    assert answer(world) == ("Unknown", "NoMetrics")
    assert "no container looks like vLLM" in reported(world).condition.message
    world.servers.by_address.clear()
    world.declare(a_budget("ttft=2s"))
    await world.look()
    assert reported(world).condition.message == "pod a: a does not answer"


async def test_several_pods_are_one_workload() -> None:
    """Their latencies are summed; one that does not answer is said, one that is not ready to be asked is left out."""
    world = BudgetWorld()
    for name in ("a", "b", "c"):
        world.start(name)
    world.start("starting", phase="Pending")
    world.start("leaving", deleting=True)
    world.start("unknown", address="")
    del world.servers.by_address["c"]
    await world.look()
    for name in ("a", "b"):
        world.servers.by_address[name].observe(Measure.TTFT, 0.2, times=15)
    await world.look()
    assert {address for address, _ in world.servers.asked} == {"a", "b", "c"}
    report = reported(world)
    assert report.status.measured[0].observations == 30
    assert "of 2 pods (2 of 3 that run were read: pod c: c does not answer)" in report.condition.message


async def test_no_more_pods_are_asked_than_are_needed() -> None:
    """A workload of a thousand is judged by a part of it, always the same."""
    world = BudgetWorld()
    for number in range(MOST_PODS + 30):
        world.start(f"p{number}")
    await world.look(2)
    asked = [address for address, _ in world.servers.asked]
    assert len(asked) == 2 * MOST_PODS
    assert set(asked[:MOST_PODS]) == set(asked[MOST_PODS:])


async def test_a_pod_of_another_revision_is_asked_at_its_own_port() -> None:
    """While a new template with another port rolls out, each pod is asked where it serves."""
    world = BudgetWorld()
    world.view.controllers["ReplicaSet"].put(
        replace(a_controller("ReplicaSet", "web-2", owner=DEPLOYMENT, budget=a_budget(port=8000)), resource_version="9")
    )
    world.start("old", owner=ref("ReplicaSet", "web-2"))
    world.declare(a_budget(port=9000))
    world.start("new")
    await world.look()
    assert sorted(world.servers.asked) == [("new", 9000), ("old", 8000)]


async def test_a_budget_that_is_gone_is_forgotten() -> None:
    """Nothing is reported, told once more so that the condition goes, and nothing left in memory."""
    world = BudgetWorld()
    world.start()
    await world.look(2)
    world.declare(None)
    told = len(world.told)
    await world.look(2)
    assert world.watch.report(DEPLOYMENT) is None
    assert len(world.told) == told + 1
    assert world.watch.figures() == []


def text_of(top: ObjectRef, world: BudgetWorld) -> str:
    """Return the budget of a workload as it is written."""
    found = budget_of(top, world.view)
    assert found is not None
    return found.text


async def test_whose_budget_it_is() -> None:
    """A followed top owner says it; for another kind the newest pod or its maker does; a deleted owner has none."""
    world = BudgetWorld()
    assert text_of(DEPLOYMENT, world) == "ttft=400ms"
    assert budget_of(ref("Deployment", "gone"), world.view) is None
    leader = ref("LeaderWorkerSet", "lws", api_version="leaderworkerset.x-k8s.io/v1")
    assert budget_of(leader, world.view) is None
    for name in ("1", "2"):
        made = a_controller("StatefulSet", f"lws-{name}", owner=leader, budget=a_budget(f"ttft={name}s"))
        world.view.controllers["StatefulSet"].put(made)
    assert text_of(leader, world) in {"ttft=1s", "ttft=2s"}
    for name in ("1", "2"):
        world.view.pods.put(a_pod(name, owner=ref("StatefulSet", f"lws-{name}")))
    assert text_of(leader, world) == "ttft=2s"
    foreign = ref("Model", "m", api_version="kubeai.org/v1")
    for name in ("3", "4"):
        world.view.pods.put(a_pod(name, owner=foreign, budget=a_budget(f"ttft={name}s")))
    assert text_of(foreign, world) == "ttft=4s"


async def test_marks_come_from_pods_and_controllers_with_a_budget() -> None:
    """Whoever changes is looked at under its top owner; what has no budget, or when nobody looks, marks nothing."""
    world = BudgetWorld()
    world.watch.queue.rest()
    world.watch.queue.wake()
    world.start("plain")
    assert world.watch.queue.is_idle
    world.start("own", owner=REPLICA_SET, budget=a_budget())
    assert not world.watch.queue.is_idle
    off = world.make_watch(seconds=0)
    off.mark_everything()
    assert off.queue.is_idle


async def test_a_silent_workload_is_asked_less_and_less() -> None:
    """Servers that never answer cost a look now and then."""
    world = BudgetWorld()
    world.start()
    world.servers.by_address.clear()
    await world.look(10)
    world.watch.queue.rest()
    world.watch.queue.wake()
    await world.look()
    (due,) = world.watch.queue._due.values()
    assert due - world.clock.now >= 10 * LOOK_SECONDS


async def test_figures_are_the_newest_numbers() -> None:
    """Metrics move with each look, though the status is written seldom."""
    world = BudgetWorld()
    server = world.start()
    await world.look()
    server.observe(Measure.TTFT, 0.2, times=50)
    await world.look()
    (first,) = world.watch.figures()
    assert (first.name, first.kept, first.recommended) == ("web", True, 32)
    server.observe(Measure.TTFT, 0.9, times=500)
    await world.look()
    (second,) = world.watch.figures()
    assert second.kept is False
    assert dict(second.ratios)["ttft-p95"] > 2
    assert answer(world) == ("True", "BudgetKept")


async def test_the_condition_is_written_once_and_taken_away_with_the_annotation() -> None:
    """The status carries condition, numbers and advice; further looks write nothing; without it all goes."""
    world, kube = BudgetWorld(), FakeKube()
    server, explainer = world.start(), an_explainer(world, kube)
    await world.look()
    server.observe(Measure.TTFT, 0.9, times=50)
    await world.look()
    await explainer.reconcile(DEPLOYMENT)
    status = kube.objects[PATH]["status"]
    assert status["budget"]["wanted"] == "ttft-p95=400ms"
    assert [one["type"] for one in status["conditions"]] == ["Admissible", "Placed", "WithinBudget"]
    assert explainer.figures[DEPLOYMENT.uid].blocked is None
    assert [verb for verb, path in kube.writes if "events" in path] == ["create"]
    written = len(kube.writes)
    await world.look(5)
    await explainer.reconcile(DEPLOYMENT)
    assert len(kube.writes) == written
    world.declare(None)
    await explainer.reconcile(DEPLOYMENT)
    status = kube.objects[PATH]["status"]
    assert status["budget"] is None
    assert [one["type"] for one in status["conditions"]] == ["Admissible", "Placed"]


async def test_a_new_leader_keeps_what_was_told() -> None:
    """Until it knows better it writes nothing about the budget that its predecessor told."""
    world, kube = BudgetWorld(), FakeKube()
    server = world.start()
    await world.look()
    server.observe(Measure.TTFT, 0.2, times=50)
    await world.look()
    await an_explainer(world, kube).reconcile(DEPLOYMENT)
    status = WorkloadStatus.model_validate(kube.objects[PATH]["status"])
    told = ObjectRef("ctagroup.dev/v1alpha1", "CTAWorkload", SPACE, "deployment-web", "u")
    world.view.workloads.put(WorkloadView(told, str(kube.version), DEPLOYMENT.uid, status))
    world.watch = world.make_watch()
    written = len(kube.writes)
    await an_explainer(world, kube).reconcile(DEPLOYMENT)
    assert len(kube.writes) == written
    assert status.conditions[-1].status is ConditionStatus.TRUE
