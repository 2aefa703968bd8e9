"""The dashboard while leaders die: real replicas, a real Prometheus that scrapes each, every panel at every moment."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest

from chart_rendering import CHART, NAMESPACE
from cluster_harness.dashboard import Query, fill, parse_dashboard, values_of
from cluster_harness.prometheus import Prometheus
from cluster_harness.prometheus_program import run_prometheus
from cluster_harness.scrape_jobs import static_job
from cluster_harness.waiting import wait_for
from gpu_cluster import GpuCluster, condition
from operator_fixtures import cluster, kinds, operator_kubeconfig
from operator_process import OperatorProcess

__all__ = ["cluster", "kinds", "operator_kubeconfig"]

DASHBOARD = parse_dashboard((CHART / "dashboards" / "cta-group-cluster.json").read_text())
WINDOW_SECONDS = 60.0
REPLICAS = 3
DENIED = ("denied-1", "denied-2", "denied-3")
Points = dict[float, float]
Seconds = range
"""Whole seconds since 1970."""
NOTHING = -1.0
_SCRAPE_SECONDS = 3
"""One scrape and the whole seconds at both ends of it."""
EXPECTED: dict[tuple[str, str], dict[str, set[float]]] = {
    ("Quotas", "A"): {"": {256}},
    ("Quotas", "B"): {"": {96}},
    ("Quotas", "C"): {"": {768}},
    ("Quotas", "D"): {"": {0}},
    ("Quotas", "E"): {"": {0}},
    ("Quota used", "A"): {"": {0.375}},
    ("Workloads blocked", "A"): {"": {3}},
    ("Workloads that do not run, and why", "A"): {name: {256} for name in DENIED},
    ("Pods waiting", "A"): {"": {0}},
    ("Placement", "A"): {"": {0}},
}
"""What the panels with the leader's numbers show, by workload."""
_LEFT_OF_OTHERS_SECONDS = 180.0


@pytest.fixture
def replicas(
    kinds: None,  # noqa: ARG001 - must be served first
    operator_kubeconfig: Path,
    tmp_path: Path,
) -> Iterator[list[OperatorProcess]]:
    """Run replicas of which one leads."""
    made: list[OperatorProcess] = []
    try:
        made.extend(OperatorProcess(operator_kubeconfig, NAMESPACE, tmp_path) for _ in range(REPLICAS))
        wait_for(lambda: [one for one in made if one.leads], "a leader")
        wait_for(lambda: all(one.ready() for one in made), "every replica to be ready")
        yield made
    finally:
        for one in made:
            one.end()


@pytest.fixture
def asked(replicas: list[OperatorProcess], cluster: GpuCluster) -> GpuCluster:
    """Use 96 of a quota of 256, and ask three times for more than is left; return when all of that is told."""
    assert replicas
    cluster.wait_known(cluster.add_node("one", []))
    cluster.declare_quota(256)
    cluster.wait_enforced(256)
    cluster.deploy("runs", 96)
    wait_for(lambda: reason(cluster, "Placed", "runs") == "Placed", "the pod of 96 to be placed")
    for name in DENIED:
        cluster.deploy(name, 256)
        is_denied = partial(reason, cluster, "Admissible", name)
        wait_for(lambda: is_denied() == "QuotaExceeded", f"{name} to be refused")  # noqa: B023
    return cluster


def reason(cluster: GpuCluster, kind: str, name: str) -> str:
    """Return the reason of one condition of a Deployment's explanation; empty when there is none."""
    return condition(cluster.explanation("Deployment", name), kind)[1]


@pytest.fixture
def prometheus(
    replicas: list[OperatorProcess],
    asked: GpuCluster,  # noqa: ARG001 - while nobody leads, panels show what anybody saw in the last minute
    tmp_path: Path,
) -> Iterator[Prometheus]:
    """Run Prometheus over the replicas, each of which is a pod to it."""
    jobs = []
    for number, one in enumerate(replicas):
        address = one.metrics_url.split("/")[2]
        jobs.append(static_job(f"operator-{number}", [address], {"pod": f"operator-{number}", "namespace": NAMESPACE}))
    with run_prometheus(tmp_path, jobs) as running:
        wait_for(lambda: len(running.query("up == 1")) == REPLICAS, "a scrape of every replica")
        yield running


def course(prometheus: Prometheus, title: str, query: Query, when: Seconds, own: str) -> dict[str, Points]:
    """Return what a query of a panel was each second, by workload: sums, and what belongs to ``own``."""
    expression = fill(query.expression, values_of(DASHBOARD, WINDOW_SECONDS))
    series = prometheus.query_range(expression, when.start, when.stop - 1, 1)
    told: dict[str, Points] = {}
    for one in series:
        if one.labels.get("namespace", one.labels.get("quota", own)) != own:
            continue  # left by another test
        points = told.setdefault(one.labels.get("name", ""), {})
        for moment, value in one.points:
            assert points.get(moment, value) == value, f"{title} shows {one.labels} twice"
            points[moment] = value
    return told


def shown(prometheus: Prometheus, own: str, when: Seconds) -> dict[str, dict[str, set[float]]]:
    """Return the values that each panel showed for longer than one scrape, ``NOTHING`` where it was empty so long."""
    found: dict[str, dict[str, set[float]]] = {}
    for title, ref in EXPECTED:
        (query,) = [one for one in DASHBOARD.panel(title).queries if one.ref == ref]
        courses = course(prometheus, title, query, when, own)
        found[f"{title} {ref}"] = {
            name: lasting([it.get(one, NOTHING) for one in when]) for name, it in courses.items()
        }
    return found


def lasting(values: Sequence[float]) -> set[float]:
    """Return the values of a course that stayed longer than one scrape."""
    return {value for value, run in groupby(values) if len(list(run)) > _SCRAPE_SECONDS}


def seconds(prometheus: Prometheus) -> int:
    """Return the last whole second by the clock of Prometheus."""
    return int(prometheus.query("time()")[0].value)


def leader_of(prometheus: Prometheus) -> str:
    """Return which replica leads; empty where that is none, or more than one."""
    found = [one.labels["pod"] for one in prometheus.query("cta_group_leader == 1")]
    return found[0] if len(found) == 1 else ""


def test_every_panel_is_the_same_at_each_moment(
    replicas: list[OperatorProcess], prometheus: Prometheus, asked: GpuCluster
) -> None:
    """One leader is killed hard, the next one ends: no panel of theirs is doubled, or empty for long."""
    expected = {f"{title} {ref}": values for (title, ref), values in EXPECTED.items()}

    def settled() -> bool:
        now = seconds(prometheus)
        return shown(prometheus, asked.namespace, range(now - 2 * _SCRAPE_SECONDS, now + 1)) == expected

    wait_for(settled, f"the panels to show {expected}", _LEFT_OF_OTHERS_SECONDS)
    start = seconds(prometheus)
    for how in (SIGKILL, SIGTERM):
        former = wait_for(lambda: leader_of(prometheus), "a leader")
        replicas[int(former.rpartition("-")[2])].end(how)
        wait_for(lambda: leader_of(prometheus) not in ("", former), "another leader")  # noqa: B023
    when = range(start, seconds(prometheus) + 1)
    assert shown(prometheus, asked.namespace, when) == expected
