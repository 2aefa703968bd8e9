"""Quotas of one cohort: at every moment the sums hold, whatever was written, and whatever people do in between."""

from collections.abc import Mapping

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from cta_group_core.quota_cohort import Member
from cta_group_core.quota_plan import Write, plan
from cta_group_core.quota_split import Share
from quota_world import Quota, QuotaWorld, Space

SPACES = st.sampled_from(("a", "b", "c", "d", "e"))
QUOTAS = st.sampled_from(("q1", "q2", "q3"))
EIGHTS = st.integers(0, 16).map(lambda eights: eights * 8)


class Cohort(RuleBasedStateMachine):
    """People, controllers and an operator that may be ended between any two writes."""

    def __init__(self) -> None:
        super().__init__()
        spaces = {name: Space(quota) for name, quota in zip("abcde", ("q1", "q1", "q2", "q3", None), strict=True)}
        self.world = QuotaWorld({"q1": Quota(64), "q2": Quota(96, 32), "q3": Quota(32, 0)}, spaces)

    @rule(space=SPACES, size=st.sampled_from((8, 16, 32, 64)))
    def create_pod(self, space: str, size: int) -> None:
        """Have a controller want a pod."""
        below = self.below_use()
        self.world.create(space, size)
        assert self.below_use() <= below, "a pod came in that the limit of its namespace does not cover"

    @rule(space=SPACES)
    def end_pod(self, space: str) -> None:
        """End a pod."""
        self.world.end(space)

    @rule()
    def try_again(self) -> None:
        """Let controllers try again."""
        self.world.retry()

    @rule(quota=QUOTAS, groups=EIGHTS)
    def edit_groups(self, quota: str, groups: int) -> None:
        """Change what a quota owns."""
        self.world.quotas[quota].groups = groups
        self.world.pending.clear()  # the operator looks at the quotas before each write

    @rule(quota=QUOTAS, limit=st.none() | EIGHTS)
    def edit_borrowing(self, quota: str, limit: int | None) -> None:
        """Change what a quota may borrow."""
        self.world.quotas[quota].borrowing_limit = limit
        self.world.pending.clear()

    @rule(space=SPACES, quota=st.none() | QUOTAS)
    def relabel(self, space: str, quota: str | None) -> None:
        """Change the labels of a namespace."""
        self.world.spaces[space].quota = quota

    @rule(space=SPACES, hard=EIGHTS)
    def tamper(self, space: str, hard: int) -> None:
        """Change a ResourceQuota by hand."""
        self.world.tamper(space, hard)

    @rule(space=SPACES)
    def enforce(self, space: str) -> None:
        """Have Kubernetes copy a limit to where it is enforced."""
        before = self.world.sums()
        self.world.enforce(space)
        assert not grown(before, self.world.sums())

    @rule()
    def decide(self) -> None:
        """Have the operator read everything and decide; before, it may have been ended."""
        self.world.decide()

    @precondition(lambda self: self.world.pending)
    @rule(place=st.integers(0, 9))
    def write(self, place: int) -> None:
        """Let one of the operator's writes reach the API server."""
        before, below = self.world.sums(), self.below_use()
        made = self.world.write(place)
        assert not grown(before, self.world.sums())
        fresh = self.below_use() - below
        if made is not None and made.version is None and made.used <= made.hard:
            fresh.discard(made.space)  # nothing limited it, and a pod came in before it was
        assert not [space for space in fresh if not self.allowed_below(space)]

    def teardown(self) -> None:
        """Let the operator finish its work and look at the end."""
        for limited in [one.limit for one in self.world.spaces.values() if one.limit is not None]:
            limited.enforced = limited.enforced or 0
        decided = self.world.settle()
        for held, most in self.world.sums().values():
            assert held <= most
        for name, space in self.world.spaces.items():
            assert (space.limit is None) == (space.quota is None), name
            if space.quota is not None and space.limit is not None:
                assert space.limit.owner == space.quota
                assert space.limit.hard >= space.used or self.world.is_overcommitted(space.quota)
        assert decided.writes == ()

    def below_use(self) -> set[str]:
        """Return the namespaces whose limit is in force and below what their pods hold."""
        limits = {name: (space.limit, space.used) for name, space in self.world.spaces.items()}
        return {
            name
            for name, (limit, used) in limits.items()
            if limit is not None and limit.enforced is not None and min(limit.hard, limit.enforced) < used
        }

    def allowed_below(self, name: str) -> bool:
        """Tell whether a namespace may be limited to less than it holds: only when its quota holds too much."""
        quota = self.world.spaces[name].quota
        return quota is None or self.world.is_overcommitted(quota)


def grown(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return the sums that are above what is allowed and larger than before."""
    return [name for name, (held, most) in after.items() if held > max(most, before[name][0])]


Cohort.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestCohort = Cohort.TestCase


def full(name: str, *, used: int, denied: tuple[int, ...] = (), hard: int | None = None) -> Share:
    """Return a namespace whose limit is what it uses, unless it says another."""
    limit = used if hard is None else hard
    return Share(name, limit, limit, used, denied)


def parts(*members: Member) -> dict[str, int]:
    """Return what each quota may give its namespaces."""
    return {name: member.entitled for name, member in plan(members).members.items()}


def test_idle_groups_are_lent() -> None:
    """A denied pod of a full quota gets what the other owns and does not need; the other is lowered first."""
    borrower = Member("b", 64, (full("b", used=64, denied=(32,)),), None)
    lender = Member("l", 128, (full("l", used=32, hard=128),), None)
    decided = plan([borrower, lender])
    assert {name: one.entitled for name, one in decided.members.items()} == {"b": 96, "l": 96}
    assert decided.writes == (Write("l", "l", 96),)
    assert decided.members["b"].waiting == ("b",)


def test_the_borrowing_limit_holds() -> None:
    """A pod that would need more than may be borrowed is not let in, though the room is there."""
    lender = Member("l", 128, (full("l", used=0, hard=128),), None)
    assert parts(Member("b", 64, (full("b", used=64, denied=(32,)),), 16), lender) == {"b": 64, "l": 128}
    assert parts(Member("b", 64, (full("b", used=64, denied=(32,)),), 32), lender) == {"b": 96, "l": 96}


def test_idle_borrowed_groups_go_back() -> None:
    """When a borrower's pod ends, what it had borrowed goes back to its owner at once."""
    borrower = Member("b", 64, (full("b", used=64, hard=96),), None)
    lender = Member("l", 64, (full("l", used=32, hard=32),), None)
    decided = plan([borrower, lender])
    assert decided.writes == (Write("b", "b", 64),)
    assert decided.members["l"].waiting == ("l",)


def test_what_is_owned_comes_before_what_is_borrowed() -> None:
    """Of two denied pods and room for one, the owner's is let in, however little the other has borrowed."""
    owner = Member("o", 96, (full("o", used=32, denied=(32,)),), None)
    other = Member("b", 32, (full("b", used=64, denied=(8,)),), None)
    assert parts(owner, other) == {"o": 64, "b": 64}


def test_room_for_an_owner_is_not_lent_out_again() -> None:
    """Too little room for the owner's pod is kept until there is enough, though a small pod of another would fit."""
    owner = Member("o", 96, (full("o", used=32, denied=(64,)),), None)
    other = Member("b", 32, (full("b", used=64, denied=(8,)),), None)
    decided = plan([owner, other]).members
    assert (decided["o"].entitled, decided["b"].entitled) == (64, 64)
    assert (decided["o"].owed, decided["b"].owed) == (32, 0)
    assert (decided["o"].owed_least, decided["b"].owed_least) == (32, 0)


def test_a_quota_without_a_namespace_lends_everything() -> None:
    """Its groups are there for the others, and come back when it gets a namespace."""
    empty = Member("e", 128, (), None)
    assert parts(empty, Member("b", 0, (full("b", used=0, denied=(96,)),), None)) == {"e": 32, "b": 96}


def test_borrowers_are_cut_first_when_the_cohort_shrinks() -> None:
    """When pods hold more than the cohort has, those within their own groups keep what they hold."""
    owner = Member("o", 64, (full("o", used=64),), None)
    borrower = Member("b", 32, (full("b", used=64),), None)
    decided = plan([owner, borrower]).members
    assert (decided["o"].entitled, decided["b"].entitled) == (64, 32)
    assert (decided["o"].overcommitted, decided["b"].overcommitted) == (False, True)


def test_an_ordinary_pod_of_a_cohort_moves_nothing() -> None:
    """A pod within the room of its namespace leaves every limit of the cohort alone, lent groups too."""
    lender = Member("l", 128, (full("l", used=40, hard=96),), None)
    borrower = Member("b", 64, (full("b", used=96),), None)
    assert plan([lender, borrower]).writes == ()


def test_groups_of_ending_pods_are_promised_and_not_given_yet() -> None:
    """A borrower is limited to what stays while its pods end; their groups go to the owner when they are gone."""
    borrower = Member("b", 32, (Share("b", 96, 96, used=96, ending=32),), None)
    owner = Member("o", 64, (full("o", used=0, denied=(32,)),), None)
    decided = plan([owner, borrower])
    assert decided.writes == (Write("b", "b", 64),)
    assert decided.members["o"].waiting == ("o",)
    lowered = Member("b", 32, (Share("b", 64, 64, used=96, ending=32),), None)
    assert plan([owner, lowered]).writes == ()
    gone = Member("b", 32, (full("b", used=64),), None)
    assert plan([owner, gone]).writes == (Write("o", "o", 32),)


def test_a_namespace_that_changes_its_quota_within_the_cohort_keeps_its_groups() -> None:
    """Its limit is taken over where it stands, though the cohort has nothing left beside it."""
    before = Member("x", 64, (), 0, leaving=64)
    after = Member("y", 64, (Share("a", None, used=64, inherited=64),), None)
    assert plan([before, after]).writes == (Write("y", "a", 64),)
