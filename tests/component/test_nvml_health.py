"""How the driver tells the health of a GPU and who uses it, by the real binding over the fake library."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cta_group_plugin.errors import DriverError, DriverGone, GpuLost
from cta_group_plugin.gpu_source import GpuUse, Vitals
from cta_group_plugin.ports import GpuProcess
from fake_nvml.driver_process import DriverProcess, driver_process
from fake_nvml.library import build_library
from fake_nvml.recorded import recorded_h200
from fake_nvml.scenario import (
    GPU_IS_LOST,
    LIB_RM_VERSION_MISMATCH,
    NOT_SUPPORTED,
    UNKNOWN,
    FakeGpu,
    Scenario,
    node_of,
)

StartDriver = Callable[[Scenario], DriverProcess]
_MIB = 1 << 20


def opened(start_driver: StartDriver, *gpus: FakeGpu) -> DriverProcess:
    """Return an open driver of these GPUs."""
    driver = start_driver(Scenario(gpus=gpus))
    driver.open()
    return driver


def test_well_gpu_tells_that_nothing_is_wrong(start_driver: StartDriver) -> None:
    """Zero is an answer, and another one than silence."""
    h200 = recorded_h200()
    assert opened(start_driver, h200).vitals(h200.uuid) == Vitals(0, remap_failed=False, double_bit_errors=0)


def test_ill_gpu_tells_what_is_wrong(start_driver: StartDriver) -> None:
    """Recovery action, row remap and double-bit errors, each by its own call."""
    ill = replace(recorded_h200(), recovery=2, remap_failed=True, double_bit=3)
    assert opened(start_driver, ill).vitals(ill.uuid) == Vitals(2, remap_failed=True, double_bit_errors=3)


def test_what_a_gpu_does_not_tell_is_unknown(start_driver: StartDriver) -> None:
    """A card without ECC and spare rows, and a driver without the field, are not ill."""
    card = replace(node_of("rtx-4090", 1).gpus[0], recovery=None, remap_failed=None, double_bit=None)
    assert opened(start_driver, card).vitals(card.uuid) == Vitals()


def test_driver_older_than_the_calls_is_not_ill(tmp_path: Path) -> None:
    """Functions that the library does not have are facts that it does not tell."""
    missing = ("nvmlDeviceGetFieldValues", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetTotalEccErrors")
    library = build_library(tmp_path / "old", without=missing)
    h200 = recorded_h200()
    with driver_process(library, Scenario(gpus=(h200,)), tmp_path) as driver:
        driver.open()
        assert driver.vitals(h200.uuid) == Vitals()


@pytest.mark.parametrize(
    ("code", "error"),
    [(UNKNOWN, DriverError), (GPU_IS_LOST, GpuLost), (LIB_RM_VERSION_MISMATCH, DriverGone)],
)
def test_gpu_that_fails_the_question(start_driver: StartDriver, code: int, error: type[DriverError]) -> None:
    """A hiccup, a GPU that is gone and a driver that is gone are three things."""
    h200 = recorded_h200()
    driver = opened(start_driver, h200)
    driver.become(Scenario(gpus=(h200,)).with_failure("nvmlDeviceGetPerformanceState", code))
    with pytest.raises(DriverError) as caught:
        driver.vitals(h200.uuid)
    assert type(caught.value) is error


def test_memory_and_processes_of_a_gpu(start_driver: StartDriver) -> None:
    """Used memory without the driver's own part; programs of every kind once each, with the larger of two figures."""
    total, reserved, _ = recorded_h200().memory_bytes or (0, 0, 0)
    busy = replace(
        recorded_h200(),
        memory_bytes=(total, reserved, 700 * _MIB),
        processes=((300, 40 * _MIB, 0), (300, 60 * _MIB, 2), (7, 512 * _MIB, 1), (9, 5 * _MIB, 2)),
    )
    assert opened(start_driver, busy).use(busy.uuid) == GpuUse(
        total_mib=143155,
        used_mib=700,
        processes=(GpuProcess(7, 512, is_mps_client=True), GpuProcess(9, 5), GpuProcess(300, 60)),
    )


def test_memory_that_is_not_told_is_unknown(start_driver: StartDriver) -> None:
    """As on a part that shares the host's memory; its processes are told all the same."""
    shared = replace(recorded_h200(), memory_bytes=None, processes=((300, _MIB, 0),))
    assert opened(start_driver, shared).use(shared.uuid) == GpuUse(processes=(GpuProcess(300, 1),))


def test_lists_of_processes_that_a_part_does_not_have_are_empty(start_driver: StartDriver) -> None:
    """A part that knows no MPS or no graphics still tells the rest."""
    h200 = replace(recorded_h200(), processes=((300, _MIB, 0),))
    driver = opened(start_driver, h200)
    without = Scenario(gpus=(h200,))
    for call in ("nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"):
        without = without.with_failure(call, NOT_SUPPORTED)
    driver.become(without)
    use = driver.use(h200.uuid)
    assert (use.processes, use.lists_processes, use.lists_clients) == ((GpuProcess(300, 1),), True, False)
    driver.become(without.with_failure("nvmlDeviceGetComputeRunningProcesses_v3", NOT_SUPPORTED))
    assert not driver.use(h200.uuid).lists_processes
