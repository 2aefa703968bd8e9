"""How the GPUs of a node are connected, as the real binding over the fake library tells it."""

from collections.abc import Callable

import pytest

from cta_group_core.links import Closeness
from cta_group_plugin.errors import DriverGone, GpuLost
from fake_nvml.driver_process import DriverProcess
from fake_nvml.scenario import GPU_IS_LOST, LIB_RM_VERSION_MISMATCH, NOT_SUPPORTED, UNKNOWN, Scenario, node_of

StartDriver = Callable[[Scenario], DriverProcess]

OK, NO_NVLINK = 0, 5
SINGLE, MULTIPLE, HOSTBRIDGE, NODE, SYSTEM = 10, 20, 30, 40, 50
FOUR = node_of("a100-80", 4)


def links_of(driver: DriverProcess, scenario: Scenario) -> dict[tuple[int, int], Closeness]:
    """Return what is told of the scenario's GPUs, by index."""
    index = {gpu.gpu_uuid: number for number, gpu in enumerate(scenario.gpus)}
    told = driver.call("links " + " ".join(index))
    assert isinstance(told, dict)
    by_index = {frozenset(index[gpu] for gpu in pair): closeness for pair, closeness in told.items()}
    return {(min(pair), max(pair)): closeness for pair, closeness in by_index.items()}


def opened(start_driver: StartDriver, scenario: Scenario) -> DriverProcess:
    """Return the driver of a scenario."""
    driver = start_driver(scenario)
    driver.open()
    return driver


def test_each_kind_of_connection_is_known(start_driver: StartDriver) -> None:
    """NVLink wins over what PCIe says; across processors is no closeness at all."""
    board = (
        FOUR.with_pair(0, 1, nvlink=OK, ancestor=SYSTEM)
        .with_pair(0, 2, nvlink=NO_NVLINK, ancestor=SINGLE)
        .with_pair(0, 3, nvlink=NO_NVLINK, ancestor=MULTIPLE)
        .with_pair(1, 2, nvlink=NO_NVLINK, ancestor=HOSTBRIDGE)
        .with_pair(1, 3, nvlink=NO_NVLINK, ancestor=NODE)
        .with_pair(2, 3, nvlink=NO_NVLINK, ancestor=SYSTEM)
    )
    assert links_of(opened(start_driver, board), board) == {
        (0, 1): Closeness.NVLINK,
        (0, 2): Closeness.SWITCH,
        (0, 3): Closeness.SWITCH,
        (1, 2): Closeness.NUMA,
        (1, 3): Closeness.NUMA,
    }


@pytest.mark.parametrize("code", [NOT_SUPPORTED, UNKNOWN])
def test_what_the_driver_does_not_tell_is_no_preference(start_driver: StartDriver, code: int) -> None:
    """A virtual machine without topology, or a driver that fails at the question."""
    mute = FOUR.with_pair(0, 1, nvlink=OK, ancestor=SINGLE)
    for call in ("nvmlDeviceGetP2PStatus", "nvmlDeviceGetTopologyCommonAncestor"):
        mute = mute.with_failure(call, code)
    assert links_of(opened(start_driver, mute), mute) == {}


def test_without_a_word_on_nvlink_pcie_counts(start_driver: StartDriver) -> None:
    """One answer is worth something without the other."""
    board = FOUR.with_pair(2, 3, nvlink=OK, ancestor=SINGLE).with_failure("nvmlDeviceGetP2PStatus", NOT_SUPPORTED)
    assert links_of(opened(start_driver, board), board) == {(2, 3): Closeness.SWITCH}


def test_lost_gpu_and_changed_driver_are_errors(start_driver: StartDriver) -> None:
    """So that whoever asks knows that nothing was told."""
    driver = opened(start_driver, FOUR)
    driver.become(FOUR.with_failure("nvmlDeviceGetP2PStatus", GPU_IS_LOST, 2))
    with pytest.raises(GpuLost):
        links_of(driver, FOUR)
    driver.become(FOUR.with_failure("nvmlDeviceGetP2PStatus", LIB_RM_VERSION_MISMATCH))
    with pytest.raises(DriverGone):
        links_of(driver, FOUR)
