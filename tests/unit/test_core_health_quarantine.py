"""Doubts and silence hold new work back, pass by themselves, and never make a GPU come and go."""

import pytest

from cta_group_core.health.inputs import (
    FoundAgain,
    Lost,
    PollFailed,
    RecoveryActionRead,
    Seen,
    XidSeen,
)
from cta_group_core.health.machine import step
from cta_group_core.health.state import GpuState, HealthRules, Phase
from cta_group_core.health.verdict import verdict_of
from health_stories import DRIVER_LOAD, OK, K, after, polls, told


@pytest.mark.parametrize("code", [61, 109, 144, 167, 173, 999, 123456])
def test_a_doubtful_xid_is_a_quarantine(code: int) -> None:
    """A suspect or unknown XID holds new work back at once, and passes with time and clean polls."""
    verdict = told(XidSeen(code))
    assert verdict.phase is Phase.SUSPECT
    assert not verdict.whole
    assert verdict.reason.startswith(f"XID {code}: ")
    assert verdict.advice == ""
    assert after(XidSeen(code), *polls(5)).phase is Phase.SUSPECT
    assert after(XidSeen(code), *polls(6)).phase is Phase.HEALTHY


def test_the_quarantine_begins_anew_with_each_doubt() -> None:
    """Doubts that go on keep the GPU out, told as one story since the first."""
    doubt: list[Seen] = [XidSeen(109), *polls(4)]
    state = after(*doubt * 3)
    assert state.phase is Phase.SUSPECT
    assert state.since == 0.0


def test_time_alone_does_not_end_a_quarantine() -> None:
    """Long after a doubt a GPU that was never polled is still suspect, and needs all its clean polls."""
    state = step(GpuState(), XidSeen(999), 0.0)
    for _ in range(K - 1):
        state = step(state, OK, 1e6)
    assert state.phase is Phase.SUSPECT
    assert step(state, OK, 1e6).phase is Phase.HEALTHY


def test_a_failed_probe_confirms_a_suspicion() -> None:
    """A GPU that stops answering in quarantine is broken, and needs what its XID would need."""
    verdict = told(XidSeen(109), PollFailed("timeout"), PollFailed("timeout"))
    assert verdict.phase is Phase.UNHEALTHY
    assert verdict.reason == "XID 109: switching between programs took too long, and then it did not answer (timeout)"
    assert told(XidSeen(109), *[PollFailed("")] * 2, *polls(99)).phase is Phase.UNHEALTHY
    assert told(XidSeen(109), *[PollFailed("")] * 2, DRIVER_LOAD, *polls(9)).phase is Phase.HEALTHY


def test_a_failed_probe_after_an_unknown_error_needs_no_reset() -> None:
    """Of an unknown XID nobody knows that it needs a reset: a GPU that answers again comes back."""
    assert told(XidSeen(999), *[PollFailed("x")] * 2).phase is Phase.UNHEALTHY
    assert told(XidSeen(999), *[PollFailed("x")] * 2, *polls(9)).phase is Phase.HEALTHY


def test_one_failed_poll_is_a_hiccup() -> None:
    """A healthy GPU that fails one poll serves on; the second in a row takes it, with the driver's words."""
    assert told(PollFailed("busy")).whole
    assert told(PollFailed("busy"), OK, PollFailed("busy"), OK).whole
    verdict = told(PollFailed("busy"), PollFailed("unknown error"))
    assert not verdict.whole
    assert verdict.reason == "it does not answer: unknown error"


def test_silent_and_back() -> None:
    """A GPU that did not answer comes back after enough clean polls, without any reset."""
    silent = after(PollFailed("x"), PollFailed("x"))
    assert after(*polls(K - 1), state=silent, at=20).phase is Phase.RECOVERING
    assert after(*polls(K), state=silent, at=20).phase is Phase.HEALTHY


def test_clean_polls_must_be_in_a_row() -> None:
    """A failed poll on the way back starts the count anew."""
    assert told(Lost(), OK, OK, PollFailed("x"), OK, OK).phase is Phase.RECOVERING
    assert told(Lost(), OK, OK, PollFailed("x"), OK, OK, OK).phase is Phase.HEALTHY


@pytest.mark.parametrize("back", [[FoundAgain()], []])
def test_lost_and_back(back: list[Seen]) -> None:
    """A lost GPU is out at once; found again, or simply answering, it proves itself and is back."""
    lost = after(Lost("it does not answer to its UUID"))
    assert verdict_of(lost).reason == "the GPU is lost: it does not answer to its UUID"
    assert after(*back, *polls(K - 1), state=lost, at=10).phase is Phase.RECOVERING
    assert after(*back, *polls(K), state=lost, at=10).phase is Phase.HEALTHY


def test_a_gpu_that_comes_and_goes_has_to_prove_itself_longer() -> None:
    """Each break soon after a return doubles the clean polls of the next one, up to eight times."""
    rules = HealthRules()
    state, now, taken = GpuState(), 0.0, []
    for _ in range(6):
        state = step(state, Lost(), now, rules)
        polls = 0
        while state.phase is not Phase.HEALTHY:
            polls, now = polls + 1, now + 10
            state = step(state, OK, now, rules)
        taken.append(polls)
    assert taken == [3, 6, 12, 24, 24, 24]
    state = step(state, Lost(), now + rules.calm_seconds, rules)
    assert state.relapses == 0


def test_a_clock_set_back_does_not_lock_a_gpu_up() -> None:
    """A quarantine is never longer than its own length, also when the clock jumps back by a year."""
    state = step(GpuState(), XidSeen(999), 1e9)
    for number in range(7):
        assert state.phase is Phase.SUSPECT
        state = step(state, OK, 9e8 + 10 * number)
    assert state.phase is Phase.HEALTHY


def test_a_reset_ends_a_quarantine() -> None:
    """What was doubtful before a reset is not after it: the clean polls alone remain."""
    assert after(XidSeen(109), DRIVER_LOAD).phase is Phase.RECOVERING
    assert after(XidSeen(109), DRIVER_LOAD, *polls(K)).phase is Phase.HEALTHY


def test_a_confirmed_suspicion_is_no_suspicion_any_more() -> None:
    """Once an error is certain only its own end counts, not the quarantine that it began with."""
    story: list[Seen] = [XidSeen(109), *[PollFailed("x")] * 2, RecoveryActionRead(1), RecoveryActionRead(0), OK]
    assert after(*story).phase is Phase.RECOVERING


def test_one_outage_is_one_relapse() -> None:
    """However many errors an outage has, it counts once."""
    back = after(Lost(), *polls(K))
    assert after(Lost(), XidSeen(95), PollFailed("x"), PollFailed("x"), state=back, at=50).relapses == 1
