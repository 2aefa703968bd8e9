"""A Deployment's rollout in pods, as Kubernetes' deployment controller reckons it."""

import pytest

from cta_group_core.rollout import Amount, Rollout, rolling


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (1, None, None, Rollout(1, 0, "25%")),
        (3, None, None, Rollout(1, 0, "25%")),
        (4, None, None, Rollout(1, 1, "25%")),
        (10, None, None, Rollout(3, 2, "25%")),
        (6, "100%", 0, Rollout(6, 0, "100%")),
        (6, 2, "50%", Rollout(2, 3, "2")),
        (6, 0, 1, Rollout(0, 1, "0")),
        (6, 0, 0, Rollout(0, 1, "0")),
        (6, 0, "10%", Rollout(0, 1, "0")),
        (2, 1, 5, Rollout(1, 2, "1")),
        (4, "many", "-1", Rollout(1, 1, "25%")),
        (0, None, None, Rollout(0, 0, "25%")),
    ],
)
def test_surge_is_rounded_up_and_what_may_be_missing_down(
    replicas: int, surge: Amount, unavailable: Amount, expected: Rollout
) -> None:
    """Shares are of the replicas; where both come to nothing one pod may be missing; odd text counts as the default."""
    assert rolling(replicas, surge, unavailable) == expected


def test_which_rollouts_need_room_first() -> None:
    """Those that make pods and may end none before: nothing they hold helps them."""
    assert rolling(2, None, None).needs_room_first
    assert not rolling(8, None, None).needs_room_first
    assert not rolling(2, 0, 1).needs_room_first
    assert not Rollout().needs_room_first
