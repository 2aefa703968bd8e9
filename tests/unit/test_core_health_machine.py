"""What each thing that can be seen of a GPU does to its health, one story at a time."""

from typing import get_args

import pytest

from cta_group_core.health.inputs import (
    EccRead,
    FoundAgain,
    Lost,
    MpsAnswer,
    MpsRead,
    PollFailed,
    RecoveryActionRead,
    RowRemapRead,
    Seen,
    Suspected,
    XidSeen,
)
from cta_group_core.health.machine import step
from cta_group_core.health.state import Fault, FaultKind, GpuState, HealthRules, Phase
from cta_group_core.health.verdict import Verdict, verdict_of
from cta_group_core.health.xid_policy import XidPolicy, parse_overrides
from health_stories import BOOT, DRIVER_LOAD, OK, K, polls, told


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


def test_the_operators_classes_decide() -> None:
    """An XID that this node calls harmless takes nothing, and one that it calls fatal takes the GPU until a reset."""
    rules = HealthRules(policy=XidPolicy(parse_overrides('{"application": [48], "fatal": [13]}')))
    assert told(XidSeen(48), rules=rules).whole
    assert not told(XidSeen(13), *polls(9), rules=rules).whole
    assert told(XidSeen(13), DRIVER_LOAD, *polls(K), rules=rules).whole


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
