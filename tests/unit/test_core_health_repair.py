"""A broken GPU comes back only once what it needed was seen to happen."""

import pytest

from cta_group_core.health.evidence import ResetEvidence
from cta_group_core.health.inputs import (
    FoundAgain,
    Lost,
    RecoveryActionRead,
    ResetSeen,
    RowRemapRead,
    Seen,
    XidSeen,
)
from cta_group_core.health.machine import step
from cta_group_core.health.state import GpuState, Phase
from cta_group_core.health.verdict import verdict_of
from health_stories import BOOT, DRIVER_LOAD, OK, K, after, polls, told


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


@pytest.mark.parametrize("code", [119, 120])
def test_a_gpu_whose_calls_hang_is_left_alone(code: int) -> None:
    """After an XID of its system processor nobody should call the driver about a GPU until it was reset."""
    assert not told(XidSeen(code)).may_call_driver
    assert not told(XidSeen(code), XidSeen(79)).may_call_driver
    assert told(XidSeen(code), DRIVER_LOAD).may_call_driver
    assert told(XidSeen(79)).may_call_driver


def test_the_first_of_equal_errors_is_told() -> None:
    """Of errors that need the same the first is the one that people read about: the others often follow from it."""
    assert told(XidSeen(48), XidSeen(95)).reason.startswith("XID 48")


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        ([XidSeen(95), RecoveryActionRead(2)], "the driver asks for a restart of the node"),
        ([XidSeen(109), Lost()], "the GPU is lost"),
        ([XidSeen(95), DRIVER_LOAD, XidSeen(999)], "XID 999"),
    ],
)
def test_which_fault_is_told(story: list[Seen], reason: str) -> None:
    """What is certain is told before a doubt, what goes on before what is over, then what needs more."""
    assert told(*story).reason.startswith(reason)


def test_clean_polls_from_before_a_reset_do_not_count() -> None:
    """A GPU proves itself after its reset, whatever it answered before."""
    assert after(XidSeen(109), *polls(2), DRIVER_LOAD, *polls(K - 1)).phase is Phase.RECOVERING


def test_a_gpu_that_breaks_on_its_way_back_was_out_all_the_time() -> None:
    """The time since when a GPU is out is that of its first error, also if that was over for a while."""
    assert after(Lost(), FoundAgain(), OK, Lost()).since == 0.0
