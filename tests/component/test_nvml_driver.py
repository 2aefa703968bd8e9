"""The NVML adapter when the driver is absent, wrong, slow or gone, and when it has news."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cta_group_plugin.errors import DriverAbsent, DriverError, DriverGone
from cta_group_plugin.ports import GpuEvent, GpuEventKind
from fake_nvml.driver_process import DriverProcess, driver_process
from fake_nvml.scenario import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    LIB_RM_VERSION_MISMATCH,
    UNKNOWN,
    Scenario,
    node_of,
)

StartDriver = Callable[[Scenario], DriverProcess]


def start_waiting(driver: DriverProcess, timeout_seconds: float = 10.0) -> None:
    """Begin a wait whose event set is there: the wait before it, of no length, has made it."""
    assert driver.wait_events(0.001) == ()
    driver.begin(f"wait {timeout_seconds}")


def test_a_node_without_the_library_is_idle(tmp_path: Path) -> None:
    """Where no libnvidia-ml.so.1 can be found, the driver is absent, not gone."""
    empty = tmp_path / "empty"
    empty.mkdir()
    with driver_process(empty, Scenario(), tmp_path) as driver, pytest.raises(DriverAbsent, match="container"):
        driver.open()


def test_a_library_without_a_driver_is_absent_and_may_come(start_driver: StartDriver) -> None:
    """A driver that is not loaded yet is absent; once it is loaded, the same process opens it."""
    node = node_of("h200", 1)
    driver = start_driver(node.with_failure("nvmlInitWithFlags", DRIVER_NOT_LOADED))
    with pytest.raises(DriverAbsent):
        driver.open()
    driver.become(node)
    driver.open()
    assert len(driver.inventory().gpus) == 1


def test_a_driver_without_gpus_is_no_error(start_driver: StartDriver) -> None:
    """A node without any GPU opens and lists nothing."""
    driver = start_driver(Scenario())
    driver.open()
    inventory = driver.inventory()
    assert (inventory.gpus, inventory.broken) == ((), ())
    assert driver.wait_events(0.01) == ()


def test_a_changed_driver_needs_a_new_process(start_driver: StartDriver) -> None:
    """Library and driver of different versions: gone, at the first open and after a success alike."""
    node = node_of("h200", 1)
    driver = start_driver(node.with_failure("nvmlInitWithFlags", LIB_RM_VERSION_MISMATCH))
    with pytest.raises(DriverGone, match="new process"):
        driver.open()
    driver.become(node)
    driver.open()
    driver.become(node.with_failure("nvmlDeviceGetCount_v2", LIB_RM_VERSION_MISMATCH))
    with pytest.raises(DriverGone):
        driver.inventory()


def test_a_driver_that_was_unloaded_is_gone(start_driver: StartDriver) -> None:
    """A driver that answered before and is not loaded any more is gone, whichever call finds it out."""
    node = node_of("h200", 1)
    driver = start_driver(node)
    driver.open()
    driver.become(node.with_failure("nvmlDeviceGetHandleByIndex_v2", DRIVER_NOT_LOADED))
    with pytest.raises(DriverGone):
        driver.inventory()
    driver.become(node.with_failure("nvmlEventSetCreate", DRIVER_NOT_LOADED))
    with pytest.raises(DriverGone):
        driver.wait_events(1.0)


def test_a_passing_error_of_the_library_can_be_tried_again(start_driver: StartDriver) -> None:
    """An unknown error is neither absent nor gone, and the next inventory works."""
    node = node_of("h200", 1)
    driver = start_driver(node.with_failure("nvmlDeviceGetCount_v2", UNKNOWN))
    driver.open()
    with pytest.raises(DriverError) as caught:
        driver.inventory()
    assert type(caught.value) is DriverError
    driver.become(node)
    assert len(driver.inventory().gpus) == 1


def test_closing_twice_and_opening_again_works(start_driver: StartDriver) -> None:
    """Close is safe at any time, and a closed driver can be opened again."""
    driver = start_driver(node_of("h200", 1))
    driver.call("close")
    driver.open()
    driver.call("close")
    driver.call("close")
    driver.open()
    assert len(driver.inventory().gpus) == 1


def test_an_xid_arrives_with_its_gpu(start_driver: StartDriver) -> None:
    """An XID that happens during the wait is told with its number and the UUID of its GPU."""
    node = node_of("h200", 2)
    driver = start_driver(node)
    driver.open()
    start_waiting(driver)
    driver.become(node.with_xid(1, 79))
    (event,) = driver.events()
    assert event == GpuEvent(kind=GpuEventKind.XID, uuid=node.gpus[1].gpu_uuid, xid=79)


def test_a_storm_comes_in_pieces(start_driver: StartDriver) -> None:
    """Many XIDs at once are told 64 at a time, in their order, and none is lost."""
    node = node_of("h200", 1)
    driver = start_driver(node)
    driver.open()
    start_waiting(driver)
    stormy = replace(node, rules=tuple(f"event 0 8 {xid}" for xid in range(100)))
    driver.become(stormy)
    first, second = driver.events(), driver.wait_events(5.0)
    assert len(first) == 64
    assert [event.xid for event in first + second] == list(range(100))


def test_a_gpu_without_xid_events_does_not_hide_the_others(start_driver: StartDriver) -> None:
    """A part that reports no XIDs is left out of the wait; its neighbour's XIDs arrive."""
    quiet, speaking = node_of("rtx-4090", 2).gpus
    node = Scenario(gpus=(replace(quiet, events=0), speaking))
    driver = start_driver(node)
    driver.open()
    start_waiting(driver)
    driver.become(node.with_xid(0, 13).with_xid(1, 31))
    (event,) = driver.events()
    assert (event.uuid, event.xid) == (speaking.gpu_uuid, 31)


def test_a_lost_gpu_is_named_once_and_told_when_it_is_back(start_driver: StartDriver) -> None:
    """A loss names its GPU, does not repeat, leaves the others watched, and ends with a recovery."""
    node = node_of("h200", 2)
    driver = start_driver(node)
    driver.open()
    driver.inventory()
    start_waiting(driver)
    driver.become(node.with_lost_gpu(0))
    (event,) = driver.events()
    assert (event.kind, event.uuid) == (GpuEventKind.LOST, node.gpus[0].gpu_uuid)
    start_waiting(driver)
    driver.become(node.with_lost_gpu(0).with_xid(1, 31))
    assert [event.xid for event in driver.events()] == [31]
    driver.become(node)
    assert len(driver.inventory().gpus) == 2
    (event,) = driver.wait_events(5.0)
    assert (event.kind, event.uuid) == (GpuEventKind.RECOVERED, node.gpus[0].gpu_uuid)


def test_a_loss_that_no_gpu_admits_is_told_without_a_name(start_driver: StartDriver) -> None:
    """When every GPU answers, the loss is told without a UUID at the end of the wait, not in a busy loop."""
    node = node_of("h200", 2)
    driver = start_driver(node.with_failure("nvmlEventSetWait_v2", GPU_IS_LOST))
    driver.open()
    (event,) = driver.wait_events(0.2)
    assert (event.kind, event.uuid) == (GpuEventKind.LOST, None)


def test_a_wait_that_fails_is_opened_again(start_driver: StartDriver) -> None:
    """An error of the wait itself blames no GPU, and XIDs arrive once the driver can wait again."""
    node = node_of("h200", 1)
    driver = start_driver(node.with_failure("nvmlEventSetWait_v2", UNKNOWN))
    driver.open()
    assert driver.wait_events(0.2) == ()
    driver.become(node)
    start_waiting(driver)
    driver.become(node.with_xid(0, 94))
    assert [event.xid for event in driver.events()] == [94]


def test_a_slow_call_only_delays(start_driver: StartDriver) -> None:
    """A driver that takes its time for one call is waited for, and the answer is complete."""
    driver = start_driver(node_of("h200", 2).with_slow("nvmlDeviceGetName", 300, gpu=1))
    driver.open()
    assert len(driver.inventory().gpus) == 2
