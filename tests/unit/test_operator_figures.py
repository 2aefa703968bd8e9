"""What the metrics tell of workloads: read from their CTAWorkloads at each scrape, so that nothing gone stays."""

from dataclasses import replace

import pytest

from cta_group_core.budget.report import BudgetReport
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.workload import BudgetMeasured, BudgetStatus, WorkloadOwner, WorkloadStatus
from cta_group_operator.metrics import BudgetFigures, WorkloadFigures
from cta_group_operator.ports import ObjectRef, WorkloadView
from cta_group_operator.reconcile.figures import budget_figures, workload_figures
from cta_group_operator.reconcile.view import ClusterView
from operator_world import SPACE, a_controller, a_pod, a_view, ref

FOREIGN = ref("Model", "m", api_version="kubeai.org/v1")
DEPLOYMENT = ref("Deployment", "web")
KEPT = Condition(type="WithinBudget", status=ConditionStatus.TRUE, reason="BudgetKept", message="")
EXCEEDED = KEPT.model_copy(update={"status": ConditionStatus.FALSE, "reason": "BudgetExceeded"})


def denied(kind: str = "Admissible", reason: str = "QuotaExceeded") -> Condition:
    """Return a condition that is False."""
    return Condition(type=kind, status=ConditionStatus.FALSE, reason=reason, message="")


def explained(
    top: ObjectRef, *conditions: Condition, name: str = "", budget: BudgetStatus | None = None
) -> WorkloadView:
    """Return the CTAWorkload of three pods of 32."""
    owner = WorkloadOwner(api_version=top.api_version, kind=top.kind, name=top.name)
    status = WorkloadStatus(
        owner=owner, message="", groups_per_pod=32, replicas_wanted=3, conditions=conditions, budget=budget
    )
    own = ref("CTAWorkload", name or f"{top.kind.lower()}-{top.name}", api_version="ctagroup.dev/v1alpha1")
    return WorkloadView(own, "1", top.uid, status)


def a_world() -> ClusterView:
    """Return a Deployment, a pod of its own, and a pod of a kind that is not followed."""
    view = a_view()
    view.controllers["Deployment"].put(a_controller("Deployment", "web", wanted=3))
    view.pods.put(a_pod("alone"))
    view.pods.put(a_pod("served", owner=FOREIGN))
    return view


def told(view: ClusterView) -> list[tuple[str, str, str | None]]:
    """Return kind, name and reason of each workload that is told."""
    return [(one.kind, one.name, one.blocked) for one in workload_figures(view)]


def test_each_workload_is_told_as_its_explanation_says() -> None:
    """Groups of all wanted pods, and the first obstacle; what only warns blocks nothing."""
    view = a_world()
    view.workloads.put(explained(DEPLOYMENT, denied()))
    view.workloads.put(explained(ref("Pod", "alone", api_version="v1"), denied("Placed", "NoRoom")))
    view.workloads.put(explained(FOREIGN, denied("ArgsAligned", "ArgsNotPatchable")))
    assert workload_figures(view) == [
        WorkloadFigures(SPACE, "Deployment", "web", 96, "QuotaExceeded"),
        WorkloadFigures(SPACE, "Pod", "alone", 96, "NoRoom"),
        WorkloadFigures(SPACE, "Model", "m", 96, None),
    ]


def test_a_workload_that_is_gone_is_told_no_more() -> None:
    """Though its explanation is there until Kubernetes collects it."""
    view = a_world()
    for top in (DEPLOYMENT, ref("Pod", "alone", api_version="v1"), FOREIGN):
        view.workloads.put(explained(top, denied()))
    view.controllers["Deployment"].remove((SPACE, "web"))
    assert [kind for kind, _, _ in told(view)] == ["Pod", "Model"]
    view.pods.remove((SPACE, "alone"))
    view.pods.remove((SPACE, "served"))
    assert told(view) == []


def test_one_that_was_made_again_under_its_name_is_not_told_by_the_old_explanation() -> None:
    """It has another uid."""
    view = a_world()
    view.workloads.put(replace(explained(DEPLOYMENT, denied()), owner_uid="older"))
    view.workloads.put(replace(explained(ref("Pod", "alone", api_version="v1"), denied()), owner_uid="older"))
    assert told(view) == []


def test_no_workload_is_told_twice() -> None:
    """An explanation that somebody wrote by hand for a workload that has one is not told: a series is there once."""
    view = a_world()
    view.workloads.put(explained(DEPLOYMENT, denied()))
    view.workloads.put(explained(DEPLOYMENT, denied("Placed", "NoRoom"), name="by-hand"))
    view.workloads.put(replace(explained(FOREIGN), status=None))
    assert told(view) == [("Deployment", "web", "QuotaExceeded")]


NUMBERS = BudgetStatus(
    wanted="ttft-p95=400ms",
    measured=(
        BudgetMeasured(name="ttft-p95", limit_microseconds=400_000, observed_microseconds=100_000),
        BudgetMeasured(name="itl-p99", limit_microseconds=50_000),
    ),
    recommended_groups=64,
)


@pytest.mark.parametrize(
    ("newest", "figures"),
    [
        (None, BudgetFigures(SPACE, "Deployment", "web", kept=True, ratios=(("ttft-p95", 0.25),), recommended=64)),
        (BudgetReport(EXCEEDED, BudgetStatus(wanted="")), BudgetFigures(SPACE, "Deployment", "web", kept=False)),
    ],
)
def test_a_budget_is_what_was_measured_here_or_else_what_a_former_leader_wrote(
    newest: BudgetReport | None, figures: BudgetFigures
) -> None:
    """A new leader tells at once, and what it measures itself is newer."""
    view = a_world()
    view.workloads.put(explained(DEPLOYMENT, KEPT, budget=NUMBERS))
    assert budget_figures(view, {DEPLOYMENT.uid: newest}.get) == [figures]
    view.workloads.put(replace(explained(DEPLOYMENT), resource_version="2"))
    assert budget_figures(view, {DEPLOYMENT.uid: newest}.get) == []
