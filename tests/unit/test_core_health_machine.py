"""What each thing that can be seen of a GPU does to its health, one story at a time."""

from typing import get_args

import pytest

from cta_group_core.health.evidence import ResetEvidence
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
from cta_group_core.health.machine import DEFAULT_RULES, step
from cta_group_core.health.state import Fault, FaultKind, GpuState, HealthRules, Phase
from cta_group_core.health.verdict import Verdict, verdict_of
from cta_group_core.health.xid_policy import XidPolicy, parse_overrides

K = DEFAULT_RULES.clean_polls
OK = PollOk()
BOOT = ResetSeen(ResetEvidence.BOOT)
DRIVER_LOAD = ResetSeen(ResetEvidence.DRIVER_LOAD)


def after(*seen: Seen, state: GpuState | None = None, rules: HealthRules = DEFAULT_RULES, at: float = 0) -> GpuState:
    """Return the state after these observations, 10 seconds apart."""
    state = state or GpuState()
    for number, each in enumerate(seen):
        state = step(state, each, at + 10 * number, rules)
    return state


def polls(count: int) -> list[Seen]:
    """Return that many clean polls."""
    return [OK] * count


def told(*seen: Seen, state: GpuState | None = None, rules: HealthRules = DEFAULT_RULES) -> Verdict:
    """Return the verdict after these observations."""
    return verdict_of(after(*seen, state=state, rules=rules), rules)


def test_a_gpu_of_which_nothing_is_known_serves_everything() -> None:
    """The state to begin with hands out whole GPUs and parts, and has nothing to say."""
    assert verdict_of(GpuState()) == Verdict(
        phase=Phase.HEALTHY,
        whole=True,
        fractions=True,
        reason="",
        since=None,
        advice="",
        may_call_driver=True,
        notice="",
    )


@pytest.mark.parametrize("code", [13, 31, 43, 45, 68, 69, 94])
def test_a_programs_error_leaves_the_gpu_alone(code: int) -> None:
    """An application's XID changes nothing at all."""
    state = GpuState()
    assert step(state, XidSeen(code), 5.0) is state


@pytest.mark.parametrize("code", [63, 92, 154])
def test_a_report_is_told_and_takes_nothing(code: int) -> None:
    """An XID worth telling is told, the GPU serves on, and a reset ends the story."""
    verdict = told(XidSeen(code))
    assert verdict.whole
    assert verdict.fractions
    assert verdict.notice.startswith(f"XID {code}: ")
    assert told(XidSeen(code), DRIVER_LOAD).notice == ""


@pytest.mark.parametrize("code", [46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, 151, 156, 158])
def test_a_fatal_xid_takes_the_gpu_at_once(code: int) -> None:
    """One fatal XID is enough, says what it was and since when, and asks for a person."""
    verdict = verdict_of(step(GpuState(), XidSeen(code), 7.0))
    assert verdict.phase is Phase.UNHEALTHY
    assert not verdict.whole
    assert not verdict.fractions
    assert verdict.reason.startswith(f"XID {code}: ")
    assert verdict.since == 7.0
    assert verdict.advice


def test_clean_polls_alone_do_not_heal_a_fatal_xid() -> None:
    """A GPU that answers perfectly after a fatal XID stays out until a reset was seen."""
    state = after(XidSeen(95), *polls(100))
    assert state.phase is Phase.UNHEALTHY
    assert after(DRIVER_LOAD, state=state).phase is Phase.RECOVERING
    assert after(DRIVER_LOAD, *polls(K - 1), state=state).phase is Phase.RECOVERING
    assert after(DRIVER_LOAD, *polls(K), state=state).phase is Phase.HEALTHY


def test_recovering_says_how_far_it_is() -> None:
    """While it proves itself a GPU tells what it had, that it is over, and how many clean polls it has."""
    verdict = told(XidSeen(95), DRIVER_LOAD, OK)
    assert not verdict.whole
    assert (
        verdict.reason == "XID 95: a memory error that reached several programs; that is over, 1 of 3 clean polls since"
    )
    assert verdict.since == 0.0
    assert verdict.advice == ""


@pytest.mark.parametrize("evidence", ResetEvidence)
def test_off_the_bus_needs_a_restart_of_the_node(evidence: ResetEvidence) -> None:
    """After XID 79 only a boot, or a person's word, counts; loading the driver anew does not."""
    enough = evidence in {ResetEvidence.BOOT, ResetEvidence.PERSON}
    assert (after(XidSeen(79), ResetSeen(evidence), *polls(9)).phase is Phase.HEALTHY) is enough


def test_evidence_from_before_the_error_counts_for_nothing() -> None:
    """A reset proves only what came before it."""
    assert after(BOOT, XidSeen(48), *polls(9)).phase is Phase.UNHEALTHY


def test_evidence_says_nothing_about_a_gpu_that_does_not_answer() -> None:
    """After a boot a GPU that is still lost stays out, for that reason."""
    verdict = told(XidSeen(79), Lost(), BOOT)
    assert verdict.phase is Phase.UNHEALTHY
    assert verdict.reason == "the GPU is lost"


def test_the_driver_being_content_again_proves_its_reset() -> None:
    """nvidia-smi's reset leaves no trace but the recovery action going back to none; that heals."""
    story = [XidSeen(95), RecoveryActionRead(1), OK, RecoveryActionRead(0), *polls(K)]
    assert after(*story).phase is Phase.HEALTHY


@pytest.mark.parametrize(
    "story",
    [
        [XidSeen(95), RecoveryActionRead(0)],
        [RecoveryActionRead(1), XidSeen(95), RecoveryActionRead(0)],
        [XidSeen(95), RecoveryActionRead(1), XidSeen(95), RecoveryActionRead(0)],
        [XidSeen(79), RecoveryActionRead(1), RecoveryActionRead(0)],
        [XidSeen(95), RecoveryActionRead(3), RecoveryActionRead(0)],
        [XidSeen(95), RecoveryActionRead(None)],
    ],
)
def test_contentment_that_proves_nothing(story: list[Seen]) -> None:
    """The driver asking for nothing is no proof where it never asked, asked before the error, or asked for less."""
    assert after(*story, *polls(9)).phase is Phase.UNHEALTHY


@pytest.mark.parametrize("value", [1, 2, 3, 4, 5, 6, 7, 8, 200])
def test_what_the_driver_asks_for_takes_the_gpu_until_it_is_content(value: int) -> None:
    """Any recovery action, also one newer than the table, takes the GPU and ends by itself."""
    verdict = told(RecoveryActionRead(value))
    assert verdict.phase is Phase.UNHEALTHY
    assert verdict.reason.startswith("the driver asks ")
    assert verdict.advice
    assert told(RecoveryActionRead(value), *polls(9)).phase is Phase.UNHEALTHY
    assert told(RecoveryActionRead(value), RecoveryActionRead(0), *polls(K)).phase is Phase.HEALTHY


def test_the_newest_recovery_action_is_told() -> None:
    """When the driver asks for something else than before, that is what people read."""
    assert told(RecoveryActionRead(2), RecoveryActionRead(1)).reason == "the driver asks for a reset of this GPU"
    assert told(RecoveryActionRead(200)).reason.startswith("the driver asks for recovery action 200")


def test_a_driver_without_the_field_changes_nothing() -> None:
    """Before R570 there is no recovery action, and its absence says nothing."""
    state = GpuState()
    assert step(state, RecoveryActionRead(None), 0.0) is state


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


def test_the_worst_fault_is_told_and_each_must_end() -> None:
    """Of several faults the one that needs most is told, and the GPU is out until all of them are over."""
    state = after(Lost(), XidSeen(95), XidSeen(79), RowRemapRead(failed=True))
    assert verdict_of(state).reason.startswith("XID 79")
    assert state.since == 0.0
    assert (
        told(BOOT, *polls(9), state=state).reason == "a broken row of its memory could not be replaced by a spare one"
    )
    assert told(BOOT, RowRemapRead(failed=False), *polls(K), state=state).whole


def test_a_lesser_error_does_not_lower_what_a_greater_one_needs() -> None:
    """XID 79 followed by one that needs a reset only still needs the node's restart."""
    assert told(XidSeen(79), XidSeen(95), DRIVER_LOAD, *polls(9)).phase is Phase.UNHEALTHY


def test_rows_that_could_not_be_replaced() -> None:
    """A failed row remap takes the GPU while the flag stands, whatever was reset."""
    failed = RowRemapRead(failed=True)
    assert not told(failed).whole
    assert not told(failed, BOOT, *polls(9)).whole
    assert told(failed, RowRemapRead(failed=False), *polls(K)).whole


def test_double_bit_errors() -> None:
    """The first reading is where counting begins; a higher one is a suspicion, a lower one was a reset."""
    assert told(EccRead(5)).whole
    assert told(EccRead(5), EccRead(5), EccRead(0), EccRead(0)).whole
    verdict = told(EccRead(5), EccRead(7))
    assert verdict.phase is Phase.SUSPECT
    assert "from 5 to 7" in verdict.reason
    assert told(EccRead(5), BOOT, EccRead(9)).whole


def test_memory_of_an_ended_process_is_a_suspicion() -> None:
    """What others find out about a GPU holds new work back in their words, and passes."""
    verdict = told(Suspected("it still holds 34000 MiB of an ended process"))
    assert verdict.phase is Phase.SUSPECT
    assert "34000 MiB" in verdict.reason
    assert told(Suspected("x"), *polls(6)).whole


def test_mps_trouble_stops_fractions_only() -> None:
    """Without its MPS daemon a GPU serves whole requests and no parts, and says so until the daemon answers."""
    verdict = told(MpsRead(MpsAnswer.NOT_READY, "no answer within 2 s"), MpsRead(MpsAnswer.NOT_READY))
    assert verdict.phase is Phase.HEALTHY
    assert verdict.whole
    assert not verdict.fractions
    assert verdict.reason == "only the whole GPU can be handed out: its MPS daemon does not answer"
    assert verdict.since == 0.0
    assert told(MpsRead(MpsAnswer.FAULT), MpsRead(MpsAnswer.READY)).fractions


def test_mps_fault_tells_what_it_means_for_its_clients() -> None:
    """A daemon in FAULT and one that is away call for different things."""
    fault, away = told(MpsRead(MpsAnswer.FAULT)), told(MpsRead(MpsAnswer.NOT_READY))
    assert "a fault ended the clients" in fault.reason
    assert "restart those" in fault.advice
    assert "log of the MPS supervisor" in away.advice


def test_mps_does_not_hide_a_broken_gpu() -> None:
    """A GPU that is out tells its own reason, and a ready daemon does not make it usable."""
    verdict = told(XidSeen(79), MpsRead(MpsAnswer.FAULT), MpsRead(MpsAnswer.READY))
    assert not verdict.whole
    assert not verdict.fractions
    assert verdict.reason.startswith("XID 79")


@pytest.mark.parametrize("code", [119, 120])
def test_a_gpu_whose_calls_hang_is_left_alone(code: int) -> None:
    """After an XID of its system processor nobody should call the driver about a GPU until it was reset."""
    assert not told(XidSeen(code)).may_call_driver
    assert not told(XidSeen(code), XidSeen(79)).may_call_driver
    assert told(XidSeen(code), DRIVER_LOAD).may_call_driver
    assert told(XidSeen(79)).may_call_driver


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


def test_the_operators_classes_decide() -> None:
    """An XID that this node calls harmless takes nothing, and one that it calls fatal takes the GPU until a reset."""
    rules = HealthRules(policy=XidPolicy(parse_overrides('{"application": [48], "fatal": [13]}')))
    assert told(XidSeen(48), rules=rules).whole
    assert not told(XidSeen(13), *polls(9), rules=rules).whole
    assert told(XidSeen(13), DRIVER_LOAD, *polls(K), rules=rules).whole


def test_a_clock_set_back_does_not_lock_a_gpu_up() -> None:
    """A quarantine is never longer than its own length, also when the clock jumps back by a year."""
    state = step(GpuState(), XidSeen(999), 1e9)
    for number in range(7):
        assert state.phase is Phase.SUSPECT
        state = step(state, OK, 9e8 + 10 * number)
    assert state.phase is Phase.HEALTHY


def test_every_observation_is_handled() -> None:
    """No kind of observation falls through; something else is a programming error."""
    samples: list[Seen] = [
        *(XidSeen(1), Lost(), FoundAgain(), RecoveryActionRead(0), RowRemapRead(failed=False), EccRead(0)),
        *(MpsRead(MpsAnswer.READY), OK, PollFailed(""), Suspected(""), BOOT),
    ]
    assert {type(sample) for sample in samples} == set(get_args(Seen))
    for sample in samples:
        step(GpuState(), sample, 0.0)
    with pytest.raises(TypeError, match="str is not an observation of a GPU"):
        step(GpuState(), "XID 79", 0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "build",
    [
        lambda: Fault(FaultKind.XID, "", 0, 0),
        lambda: GpuState(faults=(Fault(FaultKind.LOST, "a", 0, 0), Fault(FaultKind.LOST, "b", 0, 0))),
        lambda: GpuState(faults=(Fault(FaultKind.LOST, "a", 0, 0), Fault(FaultKind.XID, "b", 0, 0))),
        lambda: GpuState(clean_polls=-1),
        lambda: HealthRules(clean_polls=0),
    ],
)
def test_states_that_cannot_be(build: object) -> None:
    """A fault without a reason, two of a kind, and rules under which nothing decides cannot be built."""
    assert callable(build)
    with pytest.raises(ValueError, match=r"."):
        build()
