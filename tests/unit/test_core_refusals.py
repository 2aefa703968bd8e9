"""Which failed pods were refused because of their groups, and how long the next of the same controller waits."""

import pytest

from cta_group_core.refusals import Cause, Streak, cause_of, refused_again

RESOURCE = "nvidia.com/cta-group"
NO_ROOM = (
    "Pod was rejected: Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: "
    "code = ResourceExhausted desc = asked for 96 groups, but no GPU has room, which is unexpected"
)
NOT_HEALTHY = (
    "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
    f"{RESOURCE}, which is unexpected"
)
AWAY = (
    "Pod was rejected: Allocate failed due to rpc error: code = Unavailable desc = connection error: desc = "
    '"transport: Error while dialing: dial unix /x.sock: connect: connection refused", which is unexpected'
)
NO_CPU = "Pod was rejected: Allocate failed due to not enough cpus available to satisfy request, which is unexpected"


@pytest.mark.parametrize(
    ("message", "others", "cause"),
    [
        (NO_ROOM, (), Cause.ROOM),
        (NO_ROOM.replace("ResourceExhausted", "FailedPrecondition"), (), Cause.SIZE),
        (NO_ROOM.replace("ResourceExhausted", "InvalidArgument"), (), Cause.PLUGIN),
        (NOT_HEALTHY, (), Cause.PLUGIN),
        (NOT_HEALTHY, ("rdma/hca",), Cause.PLUGIN),
        (AWAY, (), Cause.PLUGIN),
        (AWAY, ("rdma/hca",), None),
        (NOT_HEALTHY.replace(RESOURCE, "rdma/hca"), ("rdma/hca",), None),
        (NOT_HEALTHY.replace(RESOURCE, f"{RESOURCE}-2"), (f"{RESOURCE}-2",), None),
        (NO_CPU, (), None),
    ],
)
def test_the_cause_is_read_from_kubelets_words(message: str, others: tuple[str, ...], cause: Cause | None) -> None:
    """The gRPC code tells room from size; what could be another resource's fault is nobody's of ours."""
    assert cause_of("UnexpectedAdmissionError", message, RESOURCE, others) is cause


@pytest.mark.parametrize("reason", ["Evicted", "NodeAffinity", "TopologyAffinityError", ""])
def test_other_failures_are_none_of_ours(reason: str) -> None:
    """A pod that failed for another reason is not taken for a refused one, whatever its message says."""
    assert cause_of(reason, NO_ROOM, RESOURCE) is None


def attempts_within(seconds: float) -> int:
    """Return how many pods of a controller fail in that time when each is refused at once."""
    streak = refused_again(None, 0.0, "")
    count = 1
    while (moment := streak.last + streak.wait_seconds) < seconds:
        streak = refused_again(streak, moment, "")
        count += 1
    return count


def test_a_storm_becomes_four_pods_in_five_minutes() -> None:
    """Without this, a ReplicaSet makes 4.6 pods a second; and it never becomes so slow that nothing is tried."""
    assert attempts_within(300) == 4
    assert attempts_within(86_400) > 140


def test_pods_that_are_refused_together_count_once() -> None:
    """Ten replicas of one template that fail in the same moment are one attempt."""
    streak = None
    for number in range(10):
        streak = refused_again(streak, 100 + number / 20, "no")
    assert streak == Streak(1, 100.0, "no")
    assert streak.left_seconds(103.0) == 2.0


def test_a_row_is_forgotten() -> None:
    """After a quiet time the next refusal is the first of a new row; a short quiet does not do."""
    row = Streak(3, 0.0)
    assert refused_again(row, 2 * row.wait_seconds - 1, "").count == 4
    assert refused_again(row, 2 * row.wait_seconds, "").count == 1
