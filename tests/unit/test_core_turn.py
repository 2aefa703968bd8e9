"""Whose turn it is: by priority and age, nobody overtaken for ever, room kept for who has waited long."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.turn import (
    AGING_SECONDS,
    KEEP_AFTER_SECONDS,
    KEEP_SECONDS,
    STEPS_MOST,
    in_turn,
    kept_one,
    may_keep,
    turn_left_seconds,
)


@dataclass(frozen=True)
class One:
    """Who waits."""

    name: str
    priority: int = 0
    created: float = 0.0


PODS = st.lists(
    st.builds(One, st.text("ab", max_size=3), st.sampled_from((-5, 0, 7, 100, 10**9)), st.integers(0, 10**5))
)


def names(*waiting: One) -> str:
    """Return the order, as one word."""
    return "".join(one.name for one in order(waiting))


def order(waiting: "tuple[One, ...] | list[One]") -> list[One]:
    """Return who waits in the order of turns."""
    return in_turn(waiting, priority=lambda one: one.priority, created=lambda one: one.created)


def test_the_more_important_first_then_the_older() -> None:
    """Among pods that came within minutes priority decides, among equals age does."""
    assert names(One("c", 0, 5), One("b", 0, 1), One("a", 9, 60), One("d", -1, 0)) == "abcd"


def test_who_came_much_earlier_is_not_overtaken() -> None:
    """A pod of the next lower priority is overtaken only by those that came less than ten minutes after it."""
    old = One("o", 0, 0)
    assert names(old, One("v", 1, AGING_SECONDS)) == "vo"
    assert names(old, One("v", 1, AGING_SECONDS + 1)) == "ov"


@given(PODS)
def test_nobody_is_lost_and_equals_go_by_age(waiting: list[One]) -> None:
    """The order is one of the same pods, and within one priority the older is first."""
    ordered = order(waiting)
    assert sorted(map(id, ordered)) == sorted(map(id, waiting))
    for before, after in pairwise(ordered):
        assert before.priority != after.priority or before.created <= after.created


@given(PODS, PODS, st.integers(0, 10**5), st.sampled_from((-5, 0, 100)))
def test_nobody_starves(waiting: list[One], later: list[One], created: float, priority: int) -> None:
    """Whatever comes, however important: who came an hour later never goes before one that waits."""
    patient = One("patient", priority, created)
    horizon = created + AGING_SECONDS * STEPS_MOST
    stream = [One(one.name, one.priority, horizon + 1 + one.created) for one in later]
    ordered = order([*stream, patient, *waiting])
    assert all(one.created <= horizon for one in ordered[: ordered.index(patient)])


@given(PODS)
def test_a_more_important_pod_of_the_same_age_is_before(waiting: list[One]) -> None:
    """Of two pods that came at once the more important one is first."""
    twins = [One("low", 0, 50.0), One("high", 7, 50.0)]
    ordered = order([*waiting, *twins])
    assert ordered.index(twins[1]) < ordered.index(twins[0])


def test_room_is_kept_after_minutes_and_then_elsewhere() -> None:
    """Room is kept from a stated age on, the best first, then another, and for a while none: others may use it then."""
    assert not may_keep(KEEP_AFTER_SECONDS - 1)
    assert may_keep(KEEP_AFTER_SECONDS)
    ages = [KEEP_AFTER_SECONDS + turn * KEEP_SECONDS for turn in range(4)]
    assert [kept_one("ab", age) for age in ages] == ["a", "b", None, "a"]
    assert kept_one("", KEEP_AFTER_SECONDS) is None


@given(st.integers(0, 10**6), st.integers(0, 5))
def test_what_is_kept_stays_until_its_turn_is_over(beyond: int, candidates: int) -> None:
    """Until the moment that is told the same is kept, and at that moment another, or nothing."""
    waited, keepable = KEEP_AFTER_SECONDS + beyond, [*range(candidates)]
    left = turn_left_seconds(waited)
    assert 0 < left <= KEEP_SECONDS
    assert kept_one(keepable, waited + left - 1) == kept_one(keepable, waited)
    assert (kept_one(keepable, waited + left) == kept_one(keepable, waited)) is (candidates == 0)
