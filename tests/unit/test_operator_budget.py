"""The watch over latency budgets: what it reads, when it tells, and what it forgets."""

from dataclasses import replace
from itertools import pairwise

import pytest

from budget_world import DEPLOYMENT, LOOK_SECONDS, BudgetWorld, a_budget
from cta_group_core.budget.objectives import Measure
from cta_group_core.budget.report import BudgetReport
from cta_group_core.budget.target import Served
from cta_group_operator.reconcile.budget_pods import MOST_PODS
from operator_world import SPACE, a_controller
from vllm_server_metrics import ServerMetrics

PATH = f"/apis/ctagroup.dev/v1alpha1/namespaces/{SPACE}/ctaworkloads/deployment-web/status"


def reported(world: BudgetWorld) -> BudgetReport:
    """Return what is told of the Deployment."""
    report = world.watch.report(DEPLOYMENT)
    assert report is not None
    return report


def newest(world: BudgetWorld) -> BudgetReport:
    """Return what was found of the Deployment at the last look, told or not."""
    report = world.watch.newest(DEPLOYMENT.uid)
    assert report is not None
    return report


def answer(world: BudgetWorld) -> tuple[str, str]:
    """Return status and reason."""
    condition = reported(world).condition
    return condition.status.value, condition.reason


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
        answers.append(newest(world).condition.status)
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


async def test_the_first_numbers_are_told_at_once() -> None:
    """What was told while nothing could be read is not left standing once it can."""
    world = BudgetWorld()
    await world.look()
    assert answer(world) == ("Unknown", "NotServing")
    server = world.start()
    world.servers.by_address.clear()
    await world.look()
    assert answer(world) == ("Unknown", "NoMetrics")
    world.servers.by_address["a"] = server
    await world.look()
    server.observe(Measure.TTFT, 0.2, times=50)
    await world.look()
    assert answer(world) == ("True", "BudgetKept")


async def test_a_server_that_comes_and_goes_is_not_told_each_time() -> None:
    """Writes are few whatever the pods do."""
    world = BudgetWorld()
    for number in range(60):
        server = world.start(phase="Running" if number % 2 else "Pending")
        server.observe(Measure.TTFT, 0.2, times=50)
        await world.look()
    assert len(world.told) <= 3 + 2 * 60 // 10


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
    assert world.watch.newest(DEPLOYMENT.uid) is None


async def test_a_silent_workload_is_asked_less_and_less() -> None:
    """Servers that never answer cost a look now and then."""
    world = BudgetWorld()
    world.start()
    world.servers.by_address.clear()
    due = await world.look(11)
    assert due is not None
    assert due >= 10 * LOOK_SECONDS


async def test_the_newest_numbers_are_at_hand() -> None:
    """Metrics move with each look, though the status is written seldom."""
    world = BudgetWorld()
    server = world.start()
    await world.look()
    server.observe(Measure.TTFT, 0.2, times=50)
    await world.look()
    assert (newest(world).condition.reason, newest(world).status.recommended_groups) == ("BudgetKept", 32)
    server.observe(Measure.TTFT, 0.9, times=500)
    await world.look()
    assert newest(world).condition.reason == "BudgetExceeded"
    (measured,) = newest(world).status.measured
    assert (measured.observed_microseconds or 0) > 2 * measured.limit_microseconds
    assert answer(world) == ("True", "BudgetKept")


async def watched_long(world: BudgetWorld, server: ServerMetrics, seconds: float) -> None:
    """Watch an easy load for over an hour."""
    for _ in range(130):
        server.observe(Measure.TTFT, seconds, times=50)
        await world.look()


async def test_what_is_known_of_another_budget_is_forgotten() -> None:
    """Peaks are shares of a limit: a budget that becomes four times as strict is not judged by those of before."""
    world = BudgetWorld()
    world.declare(a_budget("ttft=10s"))
    server = world.start()
    await watched_long(world, server, 0.2)
    assert reported(world).status.recommended_groups != 32
    world.declare(a_budget("ttft=300ms"))
    server.observe(Measure.TTFT, 0.2, times=50)
    await world.look(12)
    assert answer(world) == ("True", "BudgetKept")
    assert reported(world).status.recommended_groups == 32


async def test_what_is_known_of_another_size_is_forgotten() -> None:
    """Latencies of 96 groups say nothing about 32: the new pods are measured before anything is judged."""
    world = BudgetWorld()
    server = world.start("a", requests=(96,))
    await watched_long(world, server, 0.01)
    known = world.watch._watched[DEPLOYMENT.uid]
    assert known.peaks.worst() is not None
    world.view.pods.remove((SPACE, "a"))
    world.start("b", requests=(32,))
    await world.look(12)
    assert reported(world).condition.reason == "TooFewRequests"
    assert known.peaks.stretches == ()


async def test_pods_that_come_and_go_at_the_same_size_forget_nothing() -> None:
    """A restart, and a moment without any pod, leaves what was seen of that size."""
    world = BudgetWorld()
    server = world.start("a")
    await watched_long(world, server, 0.05)
    known = world.watch._watched[DEPLOYMENT.uid]
    seen = known.peaks.stretches
    world.view.pods.remove((SPACE, "a"))
    await world.look()
    world.start("b")
    await world.look()
    assert known.peaks.stretches[: len(seen) - 1] == seen[:-1]
    assert known.peaks.worst() is not None


async def test_a_workload_that_was_made_again_is_told_once() -> None:
    """A Deployment under a name that was there before has its own numbers, and the older one none."""
    world = BudgetWorld()
    world.start()
    await world.look()
    again = replace(DEPLOYMENT, uid="again")
    world.view.controllers["Deployment"].put(
        replace(a_controller("Deployment", "web", budget=a_budget()), ref=again, resource_version="900")
    )
    await world.watch.look(again)
    assert world.watch.newest("again") is not None
    assert world.watch.newest(DEPLOYMENT.uid) is None
