"""Sharing one quota between namespaces: the sum never exceeds it, at any moment, and nothing moves without a need."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.quota_cohort import Member
from cta_group_core.quota_plan import MemberPlan, Write, plan
from cta_group_core.quota_split import Share, targets_of

GROUPS = st.integers(0, 64).map(lambda eights: eights * 8)


@st.composite
def settled_namespaces(draw: st.DrawFn) -> tuple[int, list[Share]]:
    """Draw a quota whose limits add up to at most its groups, with use below each limit and some denied pods."""
    parts = draw(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=5))
    denied = st.lists(st.sampled_from((8, 32, 96)), max_size=3).map(tuple)
    shares = [
        Share(f"ns-{place}", hard, enforced=hard, used=min(used, hard), denied=draw(denied))
        for place, (hard, used) in enumerate(parts)
    ]
    new = [Share(f"new-{place}", None, denied=draw(denied)) for place in range(draw(st.integers(0, 2)))]
    return draw(st.integers(sum(hard for hard, _ in parts), 200)), shares + new


@dataclass(frozen=True)
class Split:
    """What is decided about a quota of no cohort."""

    plan: MemberPlan
    writes: tuple[Write, ...]


def split(groups: int, shares: Sequence[Share], *, leaving: int = 0) -> Split:
    """Decide about a quota that is alone in its cohort."""
    decided = plan([Member("q", groups, tuple(shares), leaving=leaving)])
    return Split(decided.members["q"], decided.writes)


def apply(shares: list[Share], writes: tuple[Write, ...]) -> list[Share]:
    """Return the namespaces after the API server took ``writes``; nothing is enforced of them yet."""
    by_name = {write.namespace: write.hard for write in writes}
    return [replace(share, hard=by_name.get(share.namespace, share.hard)) for share in shares]


def enforce(shares: list[Share]) -> list[Share]:
    """Return the namespaces after Kubernetes copied the limits to where they are enforced."""
    return [replace(share, enforced=share.hard or 0) for share in shares]


def settle(groups: int, shares: list[Share]) -> tuple[list[Share], Split]:
    """Go on until nothing is left to do."""
    for _ in range(4):
        decided = split(groups, shares)
        if decided.plan.is_settled:
            return shares, decided
        shares = enforce(apply(shares, decided.writes))
    raise AssertionError(f"not settled: {shares}")


@given(settled_namespaces(), st.data())
def test_sum_holds_whichever_writes_arrive(drawn: tuple[int, list[Share]], data: st.DataObject) -> None:
    """Whatever subset of the writes arrives, and whenever each is enforced, the limits stay within the groups."""
    groups, shares = drawn
    for _ in range(4):
        arrived = (
            data.draw(st.sets(st.sampled_from(split(groups, shares).writes))) if split(groups, shares).writes else set()
        )
        shares = apply(shares, tuple(arrived))
        assert sum(share.held for share in shares) <= groups
        late = data.draw(st.sets(st.sampled_from([share.namespace for share in shares])))
        shares = [share if share.namespace in late else enforce([share])[0] for share in shares]
        shares = [
            replace(share, used=data.draw(st.integers(0, max(share.enforced, share.used)))) if share.hard else share
            for share in shares
        ]


@given(settled_namespaces())
def test_no_limit_below_what_is_held(drawn: tuple[int, list[Share]]) -> None:
    """While the quota covers what pods hold, no namespace is limited to less than it holds."""
    groups, shares = drawn
    targets = targets_of(groups, shares)
    assert all(targets[share.namespace] >= share.used for share in shares)
    assert sum(targets.values()) == groups


@given(settled_namespaces())
def test_settles_and_then_rests(drawn: tuple[int, list[Share]]) -> None:
    """A few rounds reach the targets, and then the same input asks for no write."""
    groups, shares = drawn
    settled, decided = settle(groups, shares)
    assert decided.writes == ()
    assert sum(share.hard or 0 for share in settled) == groups


@given(GROUPS, st.lists(st.integers(0, 400), min_size=1, max_size=5))
def test_overcommitted_quota_keeps_the_sum(groups: int, used: list[int]) -> None:
    """When pods hold more than the quota, the limits still add up to the groups and nobody may grow."""
    shares = [Share(f"ns-{place}", None, used=held) for place, held in enumerate(used)]
    decided = split(groups, shares).plan
    assert sum(decided.targets.values()) == groups
    assert decided.overcommitted is (sum(used) > groups)
    if decided.overcommitted:
        assert all(decided.targets[share.namespace] <= share.used for share in shares)


@given(settled_namespaces(), st.randoms())
def test_order_of_namespaces_does_not_matter(drawn: tuple[int, list[Share]], random: Random) -> None:
    """The answer does not depend on the order in which the namespaces are listed."""
    groups, shares = drawn
    shuffled = list(shares)
    random.shuffle(shuffled)
    assert targets_of(groups, shuffled) == targets_of(groups, shares)


def test_one_namespace_gets_everything() -> None:
    """A quota of one namespace is that namespace's limit."""
    assert split(256, [Share("a", None)]).writes == (Write("q", "a", 256),)


def test_even_start() -> None:
    """Idle namespaces share evenly, the first by name get the rest."""
    assert targets_of(256, [Share("b", None), Share("a", None), Share("c", None)]) == {"a": 86, "b": 85, "c": 85}


def test_an_ordinary_pod_moves_nothing() -> None:
    """A pod that is created within its namespace's room leaves every limit alone."""
    shares = [Share("a", 128, 128, used=32), Share("b", 128, 128)]
    assert split(256, shares).plan.is_settled


def test_denied_pod_gets_idle_room_of_others() -> None:
    """Room goes to where a pod is denied; the other namespace is lowered first and the raise waits for that."""
    shares = [Share("a", 128, 128, used=128, denied=(32,)), Share("b", 128, 128, used=0)]
    decided = split(256, shares)
    assert decided.writes == (Write("q", "b", 48),)
    assert decided.plan.waiting == ("a",)
    lowered = apply(shares, decided.writes)
    assert split(256, lowered).writes == ()
    assert split(256, enforce(lowered)).writes == (Write("q", "a", 208),)


def test_demand_that_cannot_be_met_moves_nothing_for_it() -> None:
    """A denied pod that no room is left for is not given half of it."""
    shares = [Share("a", 160, 160, used=160, denied=(32,))]
    assert split(160, shares).plan.is_settled


def test_smallest_holder_is_served_first() -> None:
    """When one more pod fits, it is the one of the namespace that holds less."""
    shares = [Share("a", 64, 64, used=64, denied=(32,)), Share("b", 64, 64, used=32, denied=(32, 32))]
    targets = targets_of(128, shares)
    assert targets == {"a": 64, "b": 64}


def test_leaving_objects_count_until_they_are_gone() -> None:
    """A namespace that left the quota holds its groups until its object is deleted; a new one gets the rest at once."""
    decided = split(100, [Share("a", None)], leaving=50)
    assert decided.writes == (Write("q", "a", 50),)
    assert decided.plan.waiting == ("a",)


def test_a_new_limit_is_never_below_what_is_held() -> None:
    """A namespace that brings more pods than there is room for waits until others were lowered."""
    decided = split(100, [Share("a", None, used=60), Share("b", 80, 80, used=10)])
    assert [write.namespace for write in decided.writes] == ["b"]
    assert decided.plan.waiting == ("a",)


def test_a_limit_of_zero_is_written_at_once() -> None:
    """A new namespace without room is limited to 0 rather than left without a limit."""
    shares = [Share("a", 100, 100, used=100), Share("b", None)]
    assert split(100, shares).writes == (Write("q", "b", 0),)
