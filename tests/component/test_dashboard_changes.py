"""The chart's dashboards while the cluster changes: tables as Grafana joins them, leaders, and what is gone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_harness.dashboard import Dashboard, parse_dashboard
from cluster_harness.dashboard_answers import Answered, answer_dashboard, last_seconds, legend
from cluster_harness.dashboard_tables import Table, table_of
from cluster_harness.prometheus import Prometheus
from cluster_harness.waiting import wait_for
from cta_group_operator.metrics import BudgetFigures, Figures, QueueFigures, QuotaFigures, WorkloadFigures
from metrics_world import GPU_COUNT, World, holdings, monitored

DASHBOARDS = Path(__file__).resolve().parents[2] / "charts" / "cta-group" / "dashboards"
CLUSTER = parse_dashboard((DASHBOARDS / "cta-group-cluster.json").read_text())
WINDOW_SECONDS = 60

FIVE_SERVERS = holdings("team-a", [*((0, f"chat-{number}") for number in range(1, 5)), (1, "chat-5")])
LEADER = Figures(
    leader=True,
    quotas=[QuotaFigures("team-a", hard=160, used=160, pending=32, uncharged=64)],
    workloads=[
        *(WorkloadFigures("team-a", "Deployment", f"chat-{number}", 32, None) for number in range(1, 6)),
        WorkloadFigures("team-a", "Deployment", "chat-6", 32, "QuotaExhausted"),
    ],
    budgets=[
        BudgetFigures(
            "team-a", "Deployment", "chat-1", kept=True, ratios=[("ttft-p95", 0.25), ("itl-p99", 0.75)], recommended=32
        ),
        BudgetFigures("team-a", "Deployment", "chat-2", kept=False, ratios=[("ttft-p95", 2.5)]),
    ],
    waiting=0,
    queues=[QueueFigures("plans", 3, 1.5), QueueFigures("releases", 0, 0.0)],
)


@pytest.fixture(scope="module")
def world() -> World:
    """Five servers of 32 and a sixth that the quota refuses; the second replica of the operator does not lead."""
    return World(FIVE_SERVERS, [LEADER, Figures()])


@pytest.fixture(scope="module")
def prometheus(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Run Prometheus over the world's processes."""
    with monitored(world, tmp_path_factory.mktemp("monitored")) as running:
        yield running


@pytest.fixture(autouse=True)
def restored(world: World) -> Iterator[None]:
    """Let each test begin with the same world; what a test changed is gone from its own queries by then."""
    before = World(world.holdings, list(world.operator))
    yield
    world.holdings, world.operator = before.holdings, before.operator


def answers(prometheus: Prometheus, dashboard: Dashboard = CLUSTER) -> dict[str, Answered]:
    """Return each panel by its title."""
    found = answer_dashboard(dashboard, prometheus, last_seconds(prometheus, WINDOW_SECONDS))
    return {it.panel.title: it for it in found}


def table(prometheus: Prometheus, title: str) -> Table:
    """Return the table that a panel shows now."""
    return table_of(answers(prometheus)[title])


def wait_number(prometheus: Prometheus, title: str, number: float) -> None:
    """Wait until a panel shows a number."""
    wait_for(lambda: answers(prometheus)[title].number == number, f"{title} to show {number}")


@pytest.mark.parametrize("path", sorted(DASHBOARDS.glob("*.json")), ids=lambda path: path.stem)
def test_every_query_of_every_dashboard_parses(path: Path, prometheus: Prometheus) -> None:
    """Prometheus takes each query with the variables filled in."""
    dashboard = parse_dashboard(path.read_text())
    assert len(answers(prometheus, dashboard)) == len(dashboard.panels)


def test_the_gpus_are_a_table_of_one_row_each(prometheus: Prometheus) -> None:
    """Six queries are joined into eight rows in the order of the GPUs, the shared ones with their MPS state."""
    wait_number(prometheus, "Held", 160)
    gpus = table(prometheus, "GPUs")
    assert gpus.column("GPU") == [str(index) for index in range(GPU_COUNT)]
    assert gpus.column("Held") == [128, 32, 0, 0, 0, 0, 0, 0]
    assert gpus.column("Free") == [0, 96, 128, 128, 128, 128, 128, 128]
    assert gpus.column("MPS") == [1, 1, None, None, None, None, None, None]


def test_who_holds_what_has_a_row_a_container(prometheus: Prometheus) -> None:
    """The tenant's namespace and pod win over those of the plugin's own pod."""
    wait_number(prometheus, "Held", 160)
    held = table(prometheus, "Who holds what")
    assert sorted(map(str, held.column("Pod"))) == [f"chat-{number}" for number in range(1, 6)]
    assert set(held.column("Namespace")) == {"team-a"}
    assert held.column("Groups") == [32] * 5


def test_the_refused_workload_is_named_with_its_reason(prometheus: Prometheus) -> None:
    """A quota denial is in the table of what does not run, and in the quota's row."""
    wait_number(prometheus, "Workloads blocked", 1)
    blocked = table(prometheus, "Workloads that do not run, and why")
    assert blocked.rows == (("team-a", "Deployment", "chat-6", "QuotaExhausted", 32),)
    quotas = table(prometheus, "Quotas")
    assert [quotas.column(name) for name in ("CTAQuota", "Groups", "Used", "Denied", "On lost nodes")] == [
        ["team-a"],
        [160],
        [160],
        [32],
        [64],
    ]


def test_a_latency_budget_has_a_row_for_each_objective(prometheus: Prometheus) -> None:
    """The latency by its limit, and the groups that are advised, where a number is."""
    wait_number(prometheus, "Workloads blocked", 1)
    budgets = table(prometheus, "Latency budgets")
    assert sorted(budgets.rows) == [
        ("team-a", "Deployment", "chat-1", "itl-p99", 0.75, 32),
        ("team-a", "Deployment", "chat-1", "ttft-p95", 0.25, 32),
        ("team-a", "Deployment", "chat-2", "ttft-p95", 2.5, None),
    ]


@pytest.mark.parametrize(
    ("title", "legends"),
    [
        ("Groups held, by namespace", {"team-a", "allocatable"}),
        ("Quota used", {"team-a"}),
        ("Latency by its limit", {"chat-1 ttft-p95", "chat-1 itl-p99", "chat-2 ttft-p95"}),
        ("Placement", {"waiting", "released a minute"}),
        (
            "Pods that wait, and for what",
            {"waiting", "room is kept for", "held back after a refusal", "may not be released"},
        ),
        (
            "Pods that went wrong in the last hour",
            {
                *(f"refused: {cause}" for cause in ("room", "size", "plugin")),
                *(f"not released: {cause}" for cause in ("forbidden", "rejected", "unavailable")),
                "past the webhook",
                "planned again",
            },
        ),
        ("What is not known for sure", {"stale CTANodes", "pods past the webhook", "servers not read"}),
        ("Time until a pod is placed", {"half of them", "99 of 100"}),
        ("What the operator has to do", {"plans", "releases"}),
        ("Arguments changed at admission", {"--gpu-memory-utilization"}),
    ],
)
def test_the_series_over_time_have_their_legends(title: str, legends: set[str], prometheus: Prometheus) -> None:
    """Each panel with a course of time has a line for each thing, named after it; a rate needs two scrapes."""

    def lines() -> set[str]:
        found = answers(prometheus)[title].answers
        return {legend(answer.query, series.labels) for answer in found for series in answer.series}

    wait_for(lambda: lines() == legends, f"{title} to show {legends}")


def test_why_pods_wait_is_told_by_number(prometheus: Prometheus, world: World) -> None:
    """Each reason is a line of its own beside the sum, and stale nodes are beside pods past the webhook."""
    waiting = replace(LEADER, waiting=9, room_kept=1, backed_off=2, release_refused=3, stale_nodes=4, without_webhook=5)
    world.operator = [waiting, Figures()]
    expected = {
        "Pods that wait, and for what": {9.0, 1.0, 2.0, 3.0},
        "What is not known for sure": {4.0, 5.0, 0.0},
    }

    def newest() -> dict[str, set[float]]:
        found = answers(prometheus)
        return {
            title: {series.points[-1][1] for answer in found[title].answers for series in answer.series}
            for title in expected
        }

    wait_for(lambda: newest() == expected, f"the panels to show {expected}")


def test_another_leader_counts_no_quota_twice(prometheus: Prometheus, world: World) -> None:
    """While both replicas tell of the same quota for a moment, and after the first fell silent, it is still 160."""
    world.operator = [LEADER, LEADER]
    wait_for(lambda: len(prometheus.query("cta_group_quota_hard")) == 2, "both replicas to tell of the quota")
    assert table(prometheus, "Quotas").column("Groups") == [160]
    assert answers(prometheus)["Workloads blocked"].number == 1
    world.operator = [Figures(), LEADER]
    wait_for(lambda: len(prometheus.query("cta_group_quota_hard")) == 1, "the old leader's series to vanish")
    assert table(prometheus, "Quotas").column("Used") == [160]
    assert answers(prometheus)["Workloads blocked"].number == 1


def test_a_pod_that_ended_is_gone_from_every_panel(prometheus: Prometheus, world: World) -> None:
    """Its groups are free again with the next scrape, and no row of it stays behind."""
    wait_number(prometheus, "Held", 160)
    world.holdings = FIVE_SERVERS[:4]
    wait_number(prometheus, "Held", 128)
    assert "chat-5" not in table(prometheus, "Who holds what").column("Pod")
    assert answers(prometheus)["Free"].number == 896


def test_a_quota_that_is_deleted_takes_its_row_along(prometheus: Prometheus, world: World) -> None:
    """No quota, no row, and nothing is blocked any more."""
    world.operator = [replace(LEADER, quotas=[], workloads=[]), Figures()]
    wait_number(prometheus, "Workloads blocked", 0)
    assert table(prometheus, "Quotas").rows == ()
