"""The dashboards on a real cluster: what Grafana would show of the installed release, told by a real Prometheus."""

from cluster_harness.dashboard import fill, values_of
from cluster_harness.dashboard_answers import Answered, answer_dashboard, last_seconds
from cluster_harness.dashboard_tables import Row, Table, table_of
from cluster_harness.monitoring import installed_dashboards
from cluster_harness.prometheus import Prometheus
from cluster_harness.release import NAMESPACE
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from team import EIGHT_H100, Team

CLUSTER = "cta-group-cluster"
WINDOW_SECONDS = 60.0
LEADER = "cta_group_leader == 1"


def panels(prometheus: Prometheus, tools: Tools) -> dict[str, Answered]:
    """Return the panels of the cluster dashboard by their titles, as they are now."""
    window = last_seconds(prometheus, WINDOW_SECONDS)
    answered = answer_dashboard(installed_dashboards(tools)[CLUSTER], prometheus, window)
    return {it.panel.title: it for it in answered}


def rows(table: Table, **cells: object) -> list[Row]:
    """Return the rows of a table that have those cells."""
    named = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return [row for row in named if all(row.get(name) == cell for name, cell in cells.items())]


def wait_rows(prometheus: Prometheus, team: Team, title: str, count: int, **cells: object) -> list[Row]:
    """Wait until a table has so many rows with those cells, and return them."""

    def look() -> list[list[Row]] | None:
        found = rows(table_of(panels(prometheus, team.tools)[title]), **cells)
        return [found] if len(found) == count else None

    return wait_for(look, f"{count} rows of {title} with {cells}")[0]


def test_every_query_of_every_installed_dashboard_parses(prometheus: Prometheus, tools: Tools) -> None:
    """Grafana's sidecar finds the dashboards, and Prometheus takes each of their queries."""
    found = installed_dashboards(tools)
    assert CLUSTER in found
    for dashboard in found.values():
        answered = answer_dashboard(dashboard, prometheus, last_seconds(prometheus, WINDOW_SECONDS))
        assert len(answered) == len(dashboard.panels)


def test_every_part_of_the_release_is_scraped(prometheus: Prometheus) -> None:
    """The plugin, the MPS supervisor and both replicas of the operator answer, each known by its node."""
    expected = [(part, "node-1", 1.0) for part in ("mps", "operator", "operator", "plugin")]

    def shown() -> bool:
        targets = prometheus.query("up")
        return sorted((it.labels["container"], it.labels["node"], it.value) for it in targets) == expected

    wait_for(shown, f"the targets {expected}")


def test_the_numbers_of_an_idle_cluster(prometheus: Prometheus, tools: Tools) -> None:
    """All groups are there, the GPUs say that they are simulated, and nothing waits or is blocked."""
    expected = {"Groups": EIGHT_H100, "Fits now": 128, "Nodes simulated": 1, "MPS not ready": 0, "Workloads blocked": 0}

    def shown() -> bool:
        found = panels(prometheus, tools)
        return {title: found[title].number for title in expected} == expected

    wait_for(shown, f"the numbers {expected}")
    assert len(table_of(panels(prometheus, tools)["GPUs"]).rows) == 8


def test_a_pod_is_shown_as_long_as_it_holds_groups(prometheus: Prometheus, team: Team) -> None:
    """A pod appears in one row with its GPU and vanishes with its end; so does what was held."""
    team.start_pod("holder", 32)
    team.wait_running("holder")
    (row,) = wait_rows(prometheus, team, "Who holds what", 1, Namespace=team.namespace)
    assert (row["Pod"], row["Container"], row["Node"], row["Groups"]) == ("holder", "main", "node-1", 32)
    team.tools.kubectl("-n", team.namespace, "delete", "pod", "holder")
    wait_rows(prometheus, team, "Who holds what", 0, Namespace=team.namespace)
    held = f'cta_group_allocated{{namespace="{team.namespace}"}}'
    wait_for(lambda: prometheus.query(held) == [], "the series to end")


def test_a_refused_server_is_shown_with_its_reason_and_its_quota(prometheus: Prometheus, team: Team) -> None:
    """The sixth server of the demo in small: one row says the workload and why, one the quota and what it keeps out."""
    team.declare_quota(32)
    team.start_server("first")
    team.wait_served("first")
    team.start_server("second")
    blocked = {"Namespace": team.namespace, "Kind": "Deployment", "Name": "second", "Groups wanted": 32}
    wait_rows(prometheus, team, "Workloads that do not run, and why", 1, **blocked, Reason="QuotaExceeded")
    wait_rows(prometheus, team, "Quotas", 1, CTAQuota=team.namespace, Groups=32, Used=32, Denied=32)


def test_no_sum_is_doubled_while_another_replica_begins_to_lead(prometheus: Prometheus, team: Team) -> None:
    """When the leader's pod is deleted, the quota is its number at every scrape before, between and after."""
    team.declare_quota(64)
    wait_rows(prometheus, team, "Quotas", 1, CTAQuota=team.namespace)
    leader = wait_for(lambda: _only_leader(prometheus), "a leader")
    start = prometheus.query("time()")[0].value
    team.tools.kubectl("-n", NAMESPACE, "delete", "pod", leader)
    wait_for(lambda: _only_leader(prometheus) not in ("", leader), "another replica to lead")
    wait_rows(prometheus, team, "Quotas", 1, CTAQuota=team.namespace)
    dashboard = installed_dashboards(team.tools)[CLUSTER]
    expression = fill(dashboard.panel("Quotas").queries[0].expression, values_of(dashboard, WINDOW_SECONDS))
    end = prometheus.query("time()")[0].value
    series = prometheus.query_range(expression, start, end, 1)
    told = [value for it in series if it.labels["quota"] == team.namespace for _, value in it.points]
    assert set(told) == {64.0}


def test_no_alert_fires_on_a_release_that_works(prometheus: Prometheus, tools: Tools) -> None:
    """The chart's alerts are evaluated, and none fires."""
    assert installed_dashboards(tools)
    assert prometheus.query('ALERTS{alertname=~"CTAGroup.*",alertstate="firing"}') == []


def _only_leader(prometheus: Prometheus) -> str:
    """Return the pod that leads; nothing while none or two do."""
    found = prometheus.query(LEADER)
    return found[0].labels["pod"] if len(found) == 1 else ""
