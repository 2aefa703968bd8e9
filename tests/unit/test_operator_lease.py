"""One leader at a time: who may take the lease, when a leader must stop writing, and that writes are fenced."""

import pytest

from cta_group_operator.adapters.lease import DEFAULT_TIMES, FencedApi, LeaderLease, LeaseTimes
from cta_group_operator.errors import ApiUnavailable, LeadershipLost
from operator_world import FakeClock, FakeKube

TIMES = LeaseTimes(duration_seconds=10, renew_within_seconds=7, retry_seconds=0.001)
PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/lease"


def a_lease(kube: FakeKube, clock: FakeClock, identity: str, times: LeaseTimes = TIMES) -> LeaderLease:
    """Return the part of one replica."""
    return LeaderLease(kube, clock, namespace="ns", name="lease", identity=identity, times=times)


@pytest.mark.parametrize("phase", [0.0, 0.1, 0.75, 1.4])
async def test_a_takeover_takes_less_than_fifteen_seconds(phase: float) -> None:
    """With the times of the release: from the last renewal of a leader that was killed until another one may write.

    ``phase``: how long after the leader's renewals the follower looks.
    """
    kube, clock = FakeKube(), FakeClock()
    leader = a_lease(kube, clock, "leader", DEFAULT_TIMES)
    follower = a_lease(kube, clock, "follower", DEFAULT_TIMES)
    for _ in range(3):
        assert await leader._try()
        clock.now += phase
        assert not await follower._try()
        clock.now += DEFAULT_TIMES.retry_seconds - phase
    killed = clock.now - DEFAULT_TIMES.retry_seconds
    clock.now += phase
    while not await follower._try():
        assert not leader.is_held or clock.now - killed < DEFAULT_TIMES.renew_within_seconds
        clock.now += DEFAULT_TIMES.retry_seconds
    assert follower.is_held
    assert clock.now - killed <= DEFAULT_TIMES.duration_seconds + 2 * DEFAULT_TIMES.retry_seconds < 15


async def test_the_first_leads_and_the_second_waits_for_silence() -> None:
    """A follower takes a lease only after it saw it unchanged for its whole duration, on its own clock."""
    kube, clock = FakeKube(), FakeClock()
    first, second = a_lease(kube, clock, "first"), a_lease(kube, clock, "second")
    await first.acquire()
    assert await second._try() is False
    clock.now += 9
    assert await first._try() is True
    clock.now += 9
    assert await second._try() is False
    clock.now += 10
    assert await second._try() is True
    spec = kube.objects[PATH]["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("second", 2)
    assert second.is_held


async def test_a_leader_stops_before_another_can_begin() -> None:
    """A lease that is not renewed is not held any more well before its duration is over, and writes are refused."""
    kube, clock = FakeKube(), FakeClock()
    lease = a_lease(kube, clock, "me")
    fenced = FencedApi(kube, lease)
    with pytest.raises(LeadershipLost):
        await fenced.merge_patch("/x", {})
    await lease.acquire()
    await fenced.merge_patch("/x", {})
    clock.now += 7
    assert not lease.is_held
    with pytest.raises(LeadershipLost):
        await fenced.merge_patch("/x", {})


async def test_holding_ends_when_renewal_fails_for_long() -> None:
    """One failed renewal does not matter; failures beyond the deadline end the leadership."""
    kube, clock = FakeKube(), FakeClock()
    lease = a_lease(kube, clock, "me")
    await lease.acquire()
    kube.failures = [ApiUnavailable("away")]
    assert await lease._try() is False
    assert lease.is_held
    clock.now += 8
    kube.failures = [ApiUnavailable("away")] * 3
    with pytest.raises(LeadershipLost):
        await lease.hold()


async def test_release_lets_another_begin_at_once() -> None:
    """A lease that was given up is free; releasing what is not held changes nothing."""
    kube, clock = FakeKube(), FakeClock()
    first, second = a_lease(kube, clock, "first"), a_lease(kube, clock, "second")
    await second.release()
    assert kube.writes == []
    await first.acquire()
    await first.release()
    assert not first.is_held
    assert await second._try() is True
    await first.release()
    assert kube.objects[PATH]["spec"]["holderIdentity"] == "second"


async def test_two_that_take_it_at_once() -> None:
    """Of two replicas that see a free lease one gets it: the write is conditional on its version."""
    kube, clock = FakeKube(), FakeClock()
    first, second = a_lease(kube, clock, "first"), a_lease(kube, clock, "second")
    await first.acquire()
    await first.release()
    seen = dict(kube.objects[PATH])
    assert await first._try() is True
    kube_of_second = FakeKube(objects={PATH: seen})
    kube_of_second.update = kube.update  # type: ignore[method-assign]
    second._api = kube_of_second
    assert await second._try() is False


async def test_a_leader_that_sees_another_stops_at_once() -> None:
    """Who deletes or edits the Lease chooses another leader: the old one writes nothing more once it has seen that."""
    kube, clock = FakeKube(), FakeClock()
    first, second = a_lease(kube, clock, "first"), a_lease(kube, clock, "second")
    await first.acquire()
    del kube.objects[PATH]
    await second.acquire()
    with pytest.raises(LeadershipLost):
        await first.hold()
    assert (first.is_held, second.is_held) == (False, True)
