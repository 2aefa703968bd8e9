"""What a rollout or an autoscaler would need is told before it hangs, in exact sentences."""

from dataclasses import replace

import pytest

from cta_group_core.explain_growth import Ceiling, GrowthFacts, growth_conditions
from cta_group_core.explain_quota import QuotaFacts
from cta_group_core.rollout import Rollout, rolling

FULL = QuotaFacts("team-a", groups=256, used=240, share=256, share_used=240)
ROOMY = replace(FULL, used=192, share_used=192)
SURGING = GrowthFacts(groups_per_pod=32, wanted=6, living=6, rollout=Rollout(6, 0, "100%"))
HPA = Ceiling(10, "HorizontalPodAutoscaler web")


def told(facts: GrowthFacts) -> list[tuple[str, str, str, str]]:
    """Return type, status, reason and message of each condition."""
    return [(one.type, one.status.value, one.reason, one.message) for one in growth_conditions(facts)]


ALL_SIX = "a rollout would hang: its first new pod needs 32 beside the 6 pods that run (maxSurge 100%: up to 192), and "
THE_ONE = "a rollout would hang: its first new pod needs 32 beside the pod that runs (maxSurge 25%: up to 32), and "
SET = "set maxSurge: 0 and maxUnavailable: 1"
OF_ONE = replace(SURGING, wanted=1, living=1, rollout=rolling(1, None, None), quota=replace(FULL, used=300))


@pytest.mark.parametrize(
    ("facts", "reason", "sentence"),
    [
        (
            replace(SURGING, quota=FULL),
            "SurgeExceedsQuota",
            f"{ALL_SIX}quota 256 has 16 left (CTAQuota team-a); {SET}, or raise its spec.groups to 272",
        ),
        (
            OF_ONE,
            "SurgeExceedsQuota",
            f"{THE_ONE}quota 256 has 0 left (CTAQuota team-a); {SET}, or raise its spec.groups to 332",
        ),
        (
            replace(SURGING, quota=ROOMY, largest_fit=24),
            "NoRoomForSurge",
            f"{ALL_SIX}the largest request that a GPU has room for now is 24; {SET}",
        ),
    ],
)
def test_a_rollout_that_would_hang(facts: GrowthFacts, reason: str, sentence: str) -> None:
    """It is told with what the first new pod needs, what is left, and what to write instead."""
    assert told(facts) == [("RolloutSafe", "False", reason, sentence)]


@pytest.mark.parametrize(
    ("facts", "status", "reason"),
    [
        (replace(SURGING, quota=ROOMY, largest_fit=32), "True", "SurgeFits"),
        (SURGING, "True", "SurgeFits"),
        (replace(SURGING, quota=FULL, living=7), "True", "RollsOut"),
        (replace(SURGING, quota=FULL, living=5), "Unknown", "PodsAreMissing"),
        (replace(SURGING, quota=FULL, pods_wait=True), "Unknown", "PodsAreMissing"),
        (replace(SURGING, quota=FULL, wanted=0, living=0), "True", "NeedsNoRoom"),
        (replace(SURGING, quota=FULL, rollout=Rollout(2, 1, "2")), "True", "NeedsNoRoom"),
        (replace(SURGING, quota=FULL, rollout=Rollout()), "True", "NeedsNoRoom"),
    ],
)
def test_a_rollout_that_goes_on(facts: GrowthFacts, status: str, reason: str) -> None:
    """One that may end old pods, or whose first new pod fits, is safe; while pods are missing nobody can say."""
    assert told(facts) == [("RolloutSafe", status, reason, "")]


def test_a_ceiling_that_the_quota_never_has_room_for() -> None:
    """It is told how many pods the quota is enough for, and both numbers that could be changed."""
    (found,) = told(GrowthFacts(32, wanted=2, living=2, ceiling=HPA, quota=FULL))
    assert found[:3] == ("ScaleSafe", "False", "CeilingExceedsQuota")
    assert found[3] == (
        "HorizontalPodAutoscaler web may ask for 10 pods, 320 groups, and CTAQuota team-a has 256, enough for 8; "
        "set maxReplicas: 8, or raise its spec.groups to 320"
    )


def test_a_ceiling_with_all_that_a_cohort_lends() -> None:
    """What the quota may borrow counts, whoever holds it at the moment."""
    lent = replace(FULL, cohort="research", reachable=256, at_most=288)
    (found,) = told(GrowthFacts(32, wanted=2, living=2, ceiling=HPA, quota=lent))
    assert found[3] == (
        "HorizontalPodAutoscaler web may ask for 10 pods, 320 groups, and CTAQuota team-a has 288 with all that it may "
        "borrow, enough for 9; set maxReplicas: 9, or raise its spec.groups to 288"
    )
    enough = replace(lent, at_most=320)
    assert told(GrowthFacts(32, 2, 2, ceiling=HPA, quota=enough)) == [("ScaleSafe", "True", "CeilingFits", "")]


def test_nothing_is_told_where_nothing_bounds() -> None:
    """No quota, no autoscaler and no rollouts: no conditions."""
    assert told(GrowthFacts(32, 2, 2, ceiling=HPA)) == []
    assert told(GrowthFacts(32, 2, 2, quota=FULL)) == []
