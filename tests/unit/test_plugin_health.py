"""When a GPU is unhealthy, and when it is healthy again."""

from dataclasses import replace

import pytest

from cta_group_plugin.health import FATAL_XIDS, Faults, after_event, after_poll
from cta_group_plugin.ports import BrokenGpu, GpuEvent, GpuEventKind
from plugin_values import node_of, uuid_of

LOST = GpuEvent(GpuEventKind.LOST, uuid_of(1), detail="fell off the bus")
ALL = [uuid_of(0), uuid_of(1)]


def poll(faults: Faults, gpus: int, now: float = 50.0) -> Faults:
    """Return the faults after a poll in which the first ``gpus`` of two answer."""
    return after_poll(faults, node_of(gpus), served=ALL, now=now)


@pytest.mark.parametrize("xid", sorted(FATAL_XIDS))
def test_fatal_xid_takes_only_its_gpu(xid: int) -> None:
    """A fatal XID makes exactly one GPU unhealthy and is named in the reason."""
    faults = after_event({}, GpuEvent(GpuEventKind.XID, uuid_of(1), xid=xid), now=7.0)
    assert list(faults) == [uuid_of(1)]
    assert faults[uuid_of(1)].reason == f"XID {xid}"
    assert faults[uuid_of(1)].since == 7.0


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 63, 94])
def test_xid_of_an_application_changes_nothing(xid: int) -> None:
    """A tenant's own fault is no fault of the GPU."""
    assert after_event({}, GpuEvent(GpuEventKind.XID, uuid_of(0), xid=xid), now=1.0) == {}


def test_event_without_gpu_changes_nothing() -> None:
    """An event that names no GPU is no evidence against any; the poll that follows decides."""
    assert after_event({}, GpuEvent(GpuEventKind.LOST, None), now=1.0) == {}


def test_lost_gpu_is_back_once_it_answers() -> None:
    """A lost GPU is unhealthy until a poll finds it again."""
    faults = after_event({}, LOST, now=1.0)
    assert poll(faults, gpus=1) == faults
    assert poll(faults, gpus=2) == {}


def test_fatal_xid_outlasts_a_clean_poll() -> None:
    """After a fatal XID the GPU still answers, so only the driver's word clears it."""
    faults = after_event({}, GpuEvent(GpuEventKind.XID, uuid_of(0), xid=48), now=1.0)
    assert poll(faults, gpus=2) == faults
    assert after_event(faults, GpuEvent(GpuEventKind.RECOVERED, uuid_of(0)), now=2.0) == {}


def test_loss_after_a_fatal_xid_keeps_the_first_reason() -> None:
    """A GPU that falls off the bus after XID 79 is not healthy again just because it answers."""
    faults = after_event({}, GpuEvent(GpuEventKind.XID, uuid_of(1), xid=79), now=1.0)
    assert after_event(faults, LOST, now=2.0) == faults


def test_gpu_that_the_driver_lists_no_more_is_unhealthy() -> None:
    """A served GPU that is missing in a poll is unhealthy since that poll."""
    faults = poll({}, gpus=1, now=9.0)
    assert list(faults) == [uuid_of(1)]
    assert faults[uuid_of(1)].since == 9.0
    assert "does not list" in faults[uuid_of(1)].reason


def test_silent_gpu_is_unhealthy_with_the_drivers_reason() -> None:
    """A GPU that the driver lists but that does not answer says why."""
    silent = replace(node_of(1), broken=(BrokenGpu(1, uuid_of(1), "GPU is lost"),))
    assert after_poll({}, silent, served=ALL, now=1.0)[uuid_of(1)].reason == "GPU is lost"
