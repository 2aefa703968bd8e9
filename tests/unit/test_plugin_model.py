"""Random sequences of everything that happens to a node, judged by a second set of rules.

``CTA_GROUP_WALK_SEED`` chooses the walks and ``CTA_GROUP_WALK_STEPS`` their length, so that a failure can be repeated
and a night can be spent on it.
"""

import os
from collections.abc import Sequence

import pytest

from model_rules import KINDS
from model_walk import Walk
from virtual_time import run_in_virtual_time

SEED = os.environ.get("CTA_GROUP_WALK_SEED", "1")
STEPS = int(os.environ.get("CTA_GROUP_WALK_STEPS", "520"))


@pytest.mark.parametrize(
    ("name", "profiles", "max_clients"),
    [
        ("four-h100", ("h100-sxm",) * 4, 0),
        ("mixed", ("h100-sxm", "a100-40", "t4", "t4"), 0),
        ("one-gpu", ("t4",), 0),
        ("few-clients", ("t4", "t4"), 3),
    ],
)
def test_nothing_that_happens_breaks_a_rule(name: str, profiles: Sequence[str], max_clients: int) -> None:
    """No overlap, one GPU a fraction, sums within capacity, ceilings that cover who runs, and nothing forgotten."""
    seed = f"{SEED}/{name}"
    print(f"CTA_GROUP_WALK_SEED={SEED} CTA_GROUP_WALK_STEPS={STEPS}")  # noqa: T201 - shown when it fails
    walk = Walk(seed, [KINDS[profile] for profile in profiles], max_clients=max_clients)
    run_in_virtual_time(walk.run(STEPS))
    assert walk.counts["admitted"] > STEPS // 25
    assert walk.counts["started"] > STEPS // 40
