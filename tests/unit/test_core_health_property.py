"""For any order of observations: broken at once, back only with proof, never without a reason, never an exception."""

from dataclasses import dataclass
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cta_group_core.health.evidence import Epoch, Repair, ResetEvidence
from cta_group_core.health.inputs import (
    EccRead,
    FoundAgain,
    Lost,
    MpsAnswer,
    MpsRead,
    PollFailed,
    PollOk,
    RecoveryActionRead,
    ResetSeen,
    RowRemapRead,
    Seen,
    Suspected,
    XidSeen,
)
from cta_group_core.health.machine import step
from cta_group_core.health.record import HealthRecord, dump_record, load_record
from cta_group_core.health.state import GpuState, HealthRules, Phase
from cta_group_core.health.verdict import verdict_of
from cta_group_core.health.xid_catalogue import XidClass
from cta_group_core.health.xid_policy import XidPolicy
from cta_group_core.ids import GpuUuid

RULES: Final = HealthRules(clean_polls=2, failed_polls=2, quarantine_seconds=30, calm_seconds=100)
POLICY: Final = XidPolicy()
CODES: Final = st.integers(1, 200) | st.sampled_from([13, 48, 63, 79, 94, 95, 109, 119, 999])
FATAL: Final = [code for code in range(1, 200) if POLICY.rule_of(code).xid_class is XidClass.FATAL]
GPU: Final = GpuUuid("GPU-0")

SEEN: Final[st.SearchStrategy[Seen]] = st.one_of(
    st.builds(XidSeen, CODES),
    st.builds(Lost, st.text(max_size=3)),
    st.just(FoundAgain()),
    st.builds(RecoveryActionRead, st.none() | st.integers(-1, 9)),
    st.builds(RowRemapRead, st.booleans()),
    st.builds(EccRead, st.integers(-1, 3)),
    st.builds(MpsRead, st.sampled_from(MpsAnswer), st.text(max_size=3)),
    st.just(PollOk()),
    st.builds(PollFailed, st.text(max_size=3)),
    st.builds(Suspected, st.text(max_size=3)),
    st.builds(ResetSeen, st.sampled_from(ResetEvidence)),
)
MOMENTS: Final = st.floats(min_value=0, max_value=2.5e11)
"""Seconds since 1970, to the year 9892: a record of the health holds no others."""


@given(st.lists(st.tuples(SEEN, MOMENTS), max_size=60))
def test_no_history_is_an_error(history: list[tuple[Seen, float]]) -> None:
    """Any observations at any times, also with a clock that jumps, give a state that can be told and kept."""
    state = GpuState()
    for seen, now in history:
        state = step(state, seen, now)
        verdict = verdict_of(state)
        assert bool(verdict.reason) is not (verdict.whole and verdict.fractions)
        assert (verdict.since is None) is (verdict.whole and verdict.fractions)
    assert load_record(dump_record(HealthRecord(Epoch(), {GPU: state}))).gpus == {GPU: state}


@given(st.lists(SEEN, max_size=40), st.lists(MOMENTS, min_size=40, max_size=40))
def test_same_history_same_answer(history: list[Seen], moments: list[float]) -> None:
    """The state depends on what it is told alone: no clock, no memory of its own."""
    one = two = GpuState()
    for seen, now in zip(history, moments, strict=False):
        one = step(one, seen, now)
    for seen, now in zip(history, moments, strict=False):
        two = step(two, seen, now)
    assert one == two


@given(st.lists(st.tuples(SEEN, MOMENTS), max_size=30), st.sampled_from(FATAL), MOMENTS)
def test_a_fatal_xid_always_takes_the_gpu(history: list[tuple[Seen, float]], code: int, now: float) -> None:
    """Whatever went before, the observation of a fatal XID is the moment at which nothing may be handed out."""
    state = GpuState()
    for seen, moment in history:
        state = step(state, seen, moment)
    verdict = verdict_of(step(state, XidSeen(code), now))
    assert verdict.phase is Phase.UNHEALTHY
    assert not verdict.whole
    assert not verdict.fractions
    assert verdict.advice


@dataclass
class Shadow:
    """What must have been seen for a GPU to be well, counted in the simplest way that can be read off the rules."""

    owed: Repair = Repair.NONE
    """The largest repair that an error asked for and nothing proved."""
    answered: int = 0
    """Clean polls since the last thing that spoke against the GPU."""
    quiet_since: float = -1e9
    """When the last doubt was seen."""


class Driver(RuleBasedStateMachine):
    """One GPU, a driver that tells about it in any order, and a shadow that keeps account."""

    def __init__(self) -> None:
        super().__init__()
        self.state = GpuState()
        self.shadow = Shadow()
        self.now = 0.0
        self.asks = 0
        self.asked_since_error = False

    def tell(self, seen: Seen) -> None:
        """Pass one observation on, and check the way back to health when this was it."""
        before = self.state
        self.state = step(self.state, seen, self.now, RULES)
        if before.phase is not Phase.HEALTHY and self.state.phase is Phase.HEALTHY:
            assert isinstance(seen, PollOk)
            assert self.shadow.owed is Repair.NONE
            assert self.shadow.answered >= RULES.clean_polls
            assert self.now - self.shadow.quiet_since >= RULES.quarantine_seconds
            assert self.asks == 0

    @rule(seconds=st.floats(0, 60))
    def time_passes(self, seconds: float) -> None:
        """Let time pass, which alone changes nothing."""
        before = self.state
        self.now += seconds
        assert self.state == before

    @rule(code=CODES)
    def xid(self, code: int) -> None:
        """Report an error."""
        known = POLICY.rule_of(code)
        if known.xid_class is XidClass.FATAL:
            self.shadow.owed = max(self.shadow.owed, known.repair)
            self.shadow.answered = 0
            self.asked_since_error = False
        if known.xid_class is XidClass.SUSPECT:
            self.shadow.answered = 0
            self.shadow.quiet_since = self.now
        self.tell(XidSeen(code))
        if known.xid_class is XidClass.FATAL:
            assert self.state.phase is Phase.UNHEALTHY

    @rule(value=st.integers(0, 8))
    def recovery_action(self, value: int) -> None:
        """Let the driver ask for something, or for nothing any more."""
        if value:
            self.shadow.answered = 0
            self.asked_since_error = True
        elif self.asks and self.asked_since_error and self.shadow.owed <= _asked(self.asks):
            self.shadow.owed = Repair.NONE
        self.asks = value
        self.tell(RecoveryActionRead(value))

    @rule(evidence=st.sampled_from(ResetEvidence))
    def reset(self, evidence: ResetEvidence) -> None:
        """Prove a repair. A request of the driver that it answers is over until the driver repeats it."""
        if self.shadow.owed <= evidence.proves:
            self.shadow.owed = Repair.NONE
        if _asked(self.asks) <= evidence.proves:
            self.asks = 0
        self.shadow.answered = 0
        self.shadow.quiet_since = -1e9
        self.tell(ResetSeen(evidence))

    @rule()
    def lost(self) -> None:
        """Lose the GPU."""
        self.shadow.answered = 0
        self.tell(Lost("gone"))
        assert self.state.phase is Phase.UNHEALTHY

    @rule(reason=st.just("held memory"))
    def suspected(self, reason: str) -> None:
        """Speak against the GPU from outside."""
        self.shadow.answered = 0
        self.shadow.quiet_since = self.now
        self.tell(Suspected(reason))
        assert self.state.phase is not Phase.HEALTHY

    @rule(polls=st.integers(1, 6))
    def answers(self, polls: int) -> None:
        """Let the GPU answer some polls, ten seconds apart."""
        for _ in range(polls):
            self.now += 10
            self.shadow.answered += 1
            self.tell(PollOk())

    @rule()
    def fails_a_poll(self) -> None:
        """Let the GPU fail to answer."""
        self.shadow.answered = 0
        self.tell(PollFailed("timeout"))

    @rule(answer=st.sampled_from(MpsAnswer))
    def mps(self, answer: MpsAnswer) -> None:
        """Ask the MPS daemon, which never moves the GPU's own health."""
        phase = self.state.phase
        self.tell(MpsRead(answer))
        assert self.state.phase is phase
        assert self.state.mps_ready is (answer is MpsAnswer.READY)

    @invariant()
    def owes_nothing_when_healthy(self) -> None:
        """See that a GPU that is handed out owes no repair and nobody asks for one."""
        if self.state.phase is Phase.HEALTHY:
            assert self.shadow.owed is Repair.NONE
            assert self.asks == 0

    @invariant()
    def says_why(self) -> None:
        """See that what may not be handed out has a reason, and a time since when."""
        verdict = verdict_of(self.state, RULES)
        assert verdict.whole is (self.state.phase is Phase.HEALTHY)
        assert verdict.fractions is (verdict.whole and self.state.mps_ready)
        assert bool(verdict.reason) is not verdict.fractions
        assert verdict.since is None or verdict.since <= self.now

    def teardown(self) -> None:
        """Find the way back, whatever happened: repaired, asked for nothing and answering, the GPU heals."""
        self.tell(ResetSeen(ResetEvidence.BOOT))
        self.shadow = Shadow(quiet_since=-1e9)
        self.recovery_action(0)
        self.answers(RULES.clean_polls << RULES.most_doublings)
        assert self.state.phase is Phase.HEALTHY


def _asked(value: int) -> Repair:
    return {1: Repair.RESET, 2: Repair.REBOOT, 4: Repair.RESET, 6: Repair.RESET, 7: Repair.REBOOT}.get(
        value, Repair.NONE
    )


TestDriver = Driver.TestCase
