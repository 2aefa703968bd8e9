"""Which pods are deleted for groups that are lent: few, cheap, and only when it helps."""

from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.quota_reclaim import Candidate, victims


def pod(uid: str, groups: int, *, priority: int = 0, created: str = "2026-01-01", quota: str = "b") -> Candidate:
    """Return a pod of a borrower."""
    return Candidate(uid, quota, groups, priority, created)


def chosen(*pods: Candidate, owed: int, borrowed: int = 1000, least: int = 8) -> list[str]:
    """Return the uids of the pods that are deleted."""
    quotas = {one.quota for one in pods}
    return [one.uid for one in victims(pods, dict.fromkeys(quotas, borrowed), owed, least)]


def test_lowest_priority_then_newest() -> None:
    """The lowest priority goes first, and of equal ones the newest."""
    old, new = pod("old", 32, created="2026-01-01"), pod("new", 32, created="2026-02-01")
    low = pod("low", 32, priority=-5, created="2025-01-01")
    assert chosen(old, new, low, owed=32) == ["low"]
    assert chosen(old, new, low, owed=64) == ["low", "new"]


def test_no_more_than_needed() -> None:
    """A small pod that a later, larger one makes needless lives on."""
    assert chosen(pod("small", 8, created="2026-03-01"), pod("large", 64), owed=64) == ["large"]


def test_nobody_dies_in_vain() -> None:
    """When all borrowed groups together would not let a pod in, nothing is deleted."""
    assert chosen(pod("a", 16), owed=64, least=32) == []
    assert chosen(pod("a", 32), owed=64, least=32) == ["a"]


def test_only_what_was_borrowed() -> None:
    """A quota that has given as much as it borrowed gives no more, and one that borrowed nothing gives nothing."""
    pods = [pod("a", 32, created="2026-02-01"), pod("b", 32)]
    assert [one.uid for one in victims(pods, {"b": 32}, 96, 8)] == ["a"]
    assert victims(pods, {}, 96, 8) == []


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from((8, 32, 64)), st.integers(-1, 1)), max_size=9),
    st.dictionaries(st.sampled_from("xyz"), st.integers(0, 128)),
    st.integers(1, 200),
)
def test_no_pod_of_the_chosen_could_be_spared(
    drawn: list[tuple[str, int, int]], borrowed: dict[str, int], owed: int
) -> None:
    """Whatever is there: victims are of borrowers, and without any one of them less than what is owed comes back."""
    pods = [pod(f"p{place}", groups, priority=low, quota=quota) for place, (quota, groups, low) in enumerate(drawn)]
    found = victims(pods, borrowed, owed, least=8)
    total = sum(one.groups for one in found)
    assert all(borrowed.get(one.quota, 0) > 0 for one in found)
    assert all(total - one.groups < owed for one in found)
