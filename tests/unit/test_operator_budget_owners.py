"""Whose latency budget it is, who is asked about it, and what of it is written into the CTAWorkload."""

from dataclasses import replace

from budget_world import DEPLOYMENT, REPLICA_SET, BudgetWorld, a_budget
from cta_group_core.budget.objectives import Measure
from cta_group_core.nodes import ConditionStatus
from cta_group_core.workload import WorkloadStatus
from cta_group_operator.ports import ObjectRef, WorkloadView
from cta_group_operator.reconcile.budget_pods import budget_of
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.figures import workload_figures
from cta_group_operator.reconcile.workload import WorkloadReconciler
from explained import hear_explanation
from operator_world import RESOURCE, SPACE, FakeKube, FakeServers, a_controller, a_pod, ref

PATH = f"/apis/ctagroup.dev/v1alpha1/namespaces/{SPACE}/ctaworkloads/deployment-web/status"


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
        budgets=world.watch,
    )


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
    hear_explanation(world.view, kube, DEPLOYMENT)
    assert [one.blocked for one in workload_figures(world.view)] == [None]
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
