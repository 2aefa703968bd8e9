"""What the driver says becomes the health of all GPUs of a node."""

from dataclasses import replace

import pytest

from cta_group_core.health.evidence import ResetEvidence
from cta_group_core.health.inputs import Lost, PollFailed, PollOk, Suspected, XidSeen
from cta_group_core.health.state import HealthRules, Phase
from cta_group_core.health.xid_catalogue import XidClass
from cta_group_core.health.xid_policy import XidPolicy, parse_overrides
from cta_group_core.ids import GpuUuid
from cta_group_plugin.gpu_source import Vitals
from cta_group_plugin.health import (
    Health,
    is_out,
    seen_in_absence,
    seen_in_answer,
    seen_in_event,
    seen_in_silence,
)
from cta_group_plugin.ports import BrokenGpu, GpuEvent, GpuEventKind
from plugin_values import uuid_of

A, B = uuid_of(0), uuid_of(1)
LOST = GpuEvent(GpuEventKind.LOST, A, detail="fell off the bus")


def phases(health: Health) -> dict[GpuUuid, Phase]:
    """Return the phase of every GPU that is not healthy."""
    return {uuid: fault.phase for uuid, fault in health.faults.items()}


@pytest.mark.parametrize("xid", [48, 62, 64, 74, 79, 95, 119, 120, 140, 143])
def test_fatal_xid_takes_only_its_gpu(xid: int) -> None:
    """A fatal XID makes exactly one GPU unhealthy and is named in the reason."""
    health = Health().after({A: (XidSeen(xid),), B: (PollOk(),)}, now=7.0)
    assert phases(health) == {A: Phase.UNHEALTHY}
    assert health.faults[A].reason.startswith(f"XID {xid}: ")
    assert health.faults[A].since == 7.0


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 63, 92, 94])
def test_xid_of_an_application_changes_nothing_but_its_count(xid: int) -> None:
    """A tenant's own fault is no fault of the GPU; it is counted."""
    health = Health().after({A: (XidSeen(xid), XidSeen(xid))}, now=1.0)
    assert phases(health) == {}
    assert sum(health.xids.values()) == 2


def test_classes_are_counted_by_the_nodes_own_policy() -> None:
    """An XID that the node's people call fatal is fatal, and counted as that."""
    health = Health(HealthRules(XidPolicy(parse_overrides('{"fatal": [13]}')))).after({A: (XidSeen(13),)}, now=1.0)
    assert phases(health) == {A: Phase.UNHEALTHY}
    assert health.xids == {(A, XidClass.FATAL): 1}


def test_nothing_new_is_the_same_object() -> None:
    """Polls of healthy GPUs make no news for anybody who waits for some."""
    health = Health().after({A: (PollOk(),)}, now=1.0)
    assert health.after({A: (PollOk(),)}, now=11.0) is health


def test_events_without_a_gpu_say_nothing_of_any() -> None:
    """The poll that follows decides."""
    assert seen_in_event(GpuEvent(GpuEventKind.LOST, None)) == {}


def test_lost_gpu_is_back_after_its_clean_polls() -> None:
    """Lost at once, recovering with the first answer, healthy after three in a row."""
    health = Health().after(seen_in_event(LOST), now=0.0)
    told = [phases(health)]
    for now in (10.0, 20.0, 30.0):
        health = health.after({A: seen_in_answer(Vitals())}, now=now)
        told.append(phases(health))
    assert told == [{A: Phase.UNHEALTHY}, {A: Phase.RECOVERING}, {A: Phase.RECOVERING}, {}]


@pytest.mark.parametrize(
    ("vitals", "reason"),
    [
        (Vitals(recovery_action=1), "the driver asks for a reset of this GPU"),
        (Vitals(remap_failed=True), "a broken row of its memory could not be replaced"),
    ],
)
def test_answers_that_speak_against_a_gpu(vitals: Vitals, reason: str) -> None:
    """A GPU that answers and says that it is broken is believed."""
    health = Health().after({A: seen_in_answer(vitals)}, now=1.0)
    assert phases(health) == {A: Phase.UNHEALTHY}
    assert health.faults[A].reason.startswith(reason)


def test_new_double_bit_errors_make_a_gpu_suspect() -> None:
    """The count of before is no news, one more is."""
    health = Health().after({A: seen_in_answer(Vitals(double_bit_errors=3))}, now=1.0)
    assert phases(health) == {}
    assert phases(health.after({A: seen_in_answer(Vitals(double_bit_errors=4))}, now=2.0)) == {A: Phase.SUSPECT}


def test_one_failed_answer_is_a_hiccup_and_a_lost_gpu_is_not() -> None:
    """A GPU that fails a poll may answer the next; one that says it is gone is out at once."""
    silent, gone = BrokenGpu(0, A, "Unknown Error"), BrokenGpu(1, B, "GPU is lost", is_lost=True)
    assert seen_in_silence(silent) == (PollFailed("Unknown Error"),)
    assert seen_in_silence(gone) == (Lost("GPU is lost"),)
    health = Health().after({A: seen_in_silence(silent), B: seen_in_silence(gone)}, now=1.0)
    assert phases(health) == {B: Phase.UNHEALTHY}
    assert phases(health.after({A: seen_in_silence(silent)}, now=2.0)).keys() == {A, B}


def test_gpu_that_the_driver_lists_no_more_is_lost() -> None:
    """Only of those that were offered."""
    assert list(seen_in_absence([A, B], {B})) == [A]


def test_proof_of_a_repair_can_be_for_some_gpus_only() -> None:
    """A person's word for one GPU is no word for the other."""
    health = Health().after({A: (XidSeen(48),), B: (XidSeen(48),)}, now=0.0)
    some = health.repaired([ResetEvidence.PERSON], now=1.0, only={A})
    assert phases(some) == {A: Phase.RECOVERING, B: Phase.UNHEALTHY}
    assert phases(health.repaired([ResetEvidence.BOOT], now=1.0)) == {A: Phase.RECOVERING, B: Phase.RECOVERING}


def test_only_broken_gpus_are_remembered_when_they_are_away() -> None:
    """And not for ever more of them."""
    health = Health().after({A: (PollOk(),), B: (XidSeen(48),)}, now=0.0)
    assert health.without_absent({A}).states.keys() == {A, B}
    assert health.without_absent({B}).states.keys() == {B}
    many = {uuid_of(number): (XidSeen(48),) for number in range(2, 90)}
    assert len(health.after(many, now=9.0).without_absent({A}).states) == 33


def test_gpu_with_hanging_calls_is_not_asked() -> None:
    """After XID 119 a question may never be answered; others are asked, and one that nobody knows."""
    health = Health().after({A: (XidSeen(119),)}, now=0.0)
    assert [health.may_call_driver(uuid) for uuid in (A, B, None)] == [False, True, True]


def test_held_back_is_not_out() -> None:
    """A suspect GPU is not known to be broken."""
    health = Health().after({A: (Suspected("x"),), B: (XidSeen(79),)}, now=0.0)
    assert [is_out(health.faults.get(uuid)) for uuid in (A, B, uuid_of(2))] == [False, True, False]


def test_notice_is_kept_for_people() -> None:
    """An XID worth reporting is told until the GPU is reset."""
    health = Health().after({A: (XidSeen(63),)}, now=0.0)
    assert health.notice(A).startswith("XID 63")
    assert health.notice(B) == ""
    assert replace(health).repaired([ResetEvidence.BOOT], now=1.0).notice(A) == ""
