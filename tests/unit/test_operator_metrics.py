"""Metrics are there from the start, and a replica that does not lead tells nothing of the cluster."""

from prometheus_client import generate_latest

from cta_group_operator.metrics import BudgetFigures, Figures, Metrics, QueueFigures, QuotaFigures, WorkloadFigures


def exposition(figures: Figures) -> str:
    """Return what a scrape sees."""
    metrics = Metrics("1.2.3")
    metrics.follow(lambda: figures)
    return generate_latest(metrics.registry).decode()


def test_counters_start_at_zero() -> None:
    """Counters are there before they count, and the version is told."""
    text = exposition(Figures())
    assert "cta_group_placement_released_total 0.0" in text
    assert "cta_group_placement_seconds_count 0.0" in text
    assert 'cta_group_reconcile_errors_total{kind="quota"} 0.0' in text
    assert 'cta_group_build_info{version="1.2.3"} 1.0' in text


def test_a_follower_tells_only_that() -> None:
    """A follower says that it does not lead and how fresh its watches are, and nothing else of the cluster."""
    text = exposition(Figures(event_ages=(("Pod", 3.0),)))
    assert "cta_group_leader 0.0" in text
    assert 'cta_group_watch_event_age_seconds{kind="Pod"} 3.0' in text
    assert "cta_group_placement_waiting" not in text
    assert "cta_group_quota_hard" not in text


def test_the_leader_tells_quotas_and_workloads() -> None:
    """Quotas, workloads and why they are blocked are told with their names."""
    figures = Figures(
        leader=True,
        quotas=(QuotaFigures("team-a", 256, 96, 32, borrowed=0, lent=64, uncharged=32),),
        workloads=(
            WorkloadFigures("a", "Deployment", "web", 96, "QuotaExceeded"),
            WorkloadFigures("a", "Deployment", "ok", 32, None),
        ),
        waiting=2,
        queues=(QueueFigures("plans", 3, 1.5),),
    )
    text = exposition(figures)
    assert 'cta_group_quota_hard{quota="team-a"} 256.0' in text
    assert 'cta_group_quota_pending{quota="team-a"} 32.0' in text
    assert 'cta_group_quota_borrowed{quota="team-a"} 0.0' in text
    assert 'cta_group_quota_lent{quota="team-a"} 64.0' in text
    assert 'cta_group_quota_uncharged{quota="team-a"} 32.0' in text
    assert 'cta_group_workload_requested{kind="Deployment",name="ok",namespace="a"} 32.0' in text
    assert 'blocked{kind="Deployment",name="web",namespace="a",reason="QuotaExceeded"} 1.0' in text
    assert 'blocked{kind="Deployment",name="ok"' not in text
    assert "cta_group_placement_waiting 2.0" in text
    assert 'cta_group_queue_depth{queue="plans"} 3.0' in text
    assert 'cta_group_queue_oldest_seconds{queue="plans"} 1.5' in text


def test_what_was_made_again_under_its_name_is_told_once() -> None:
    """Two series of the same labels in one answer would cost the scrape; the newer one is told."""
    twice = [BudgetFigures("a", "Deployment", "web", kept=kept, ratios=(("ttft-p95", 0.5),)) for kept in (False, True)]
    workloads = [WorkloadFigures("a", "Deployment", "web", groups, "NoRoom") for groups in (32, 64)]
    text = exposition(Figures(leader=True, budgets=twice, workloads=workloads))
    series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series))
    assert 'cta_group_workload_budget_kept{kind="Deployment",name="web",namespace="a"} 1.0' in text
    assert 'cta_group_workload_requested{kind="Deployment",name="web",namespace="a"} 64.0' in text


def test_releases_that_fail_are_told_from_the_start() -> None:
    """Each cause is a series at zero, and the leader tells how many pods are held now."""
    text = exposition(Figures(leader=True, release_refused=3))
    for cause in ("changed", "forbidden", "rejected", "unavailable"):
        assert f'cta_group_placement_release_failures_total{{cause="{cause}"}} 0.0' in text
    assert "cta_group_placement_release_refused 3.0" in text
    assert "with a node chosen" not in text
