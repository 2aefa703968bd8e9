"""Metrics are there from the start, and a replica that does not lead tells nothing of the cluster."""

from prometheus_client import generate_latest

from cta_group_operator.metrics import Figures, Metrics, QueueFigures, QuotaFigures, WorkloadFigures


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
