"""Compute modes: exclusive while a GPU is shared, Default for a whole one, what was found given back."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.simulated_compute_modes import SimulatedComputeModes
from cta_group_plugin.errors import DriverError
from cta_group_plugin.mps.driver_calls import THREAD_NAME
from cta_group_plugin.ports import ComputeMode, whole_demand
from cta_group_plugin.settings import ComputeModeUse
from fake_nvml.driver_process import DriverProcess
from fake_nvml.scenario import NO_PERMISSION, Scenario, node_of
from mps_supervising import ONE, Supervising, share, state_of
from simulated_mps import FAST, SimulatedNode, eventually

EXCLUSIVE, DEFAULT, PROHIBITED = ComputeMode.EXCLUSIVE_PROCESS, ComputeMode.DEFAULT, ComputeMode.PROHIBITED


class Modes:
    """Compute modes that can be denied, or not answered."""

    def __init__(self) -> None:
        self.mode = DEFAULT
        self.denied = False
        self.answers = threading.Event()
        self.answers.set()

    def get(self, _gpu: GpuUuid) -> ComputeMode:
        """Return the one mode."""
        self.answers.wait()
        return self.mode

    def set(self, _gpu: GpuUuid, mode: ComputeMode) -> None:
        """Change it, when that is allowed."""
        if self.denied:
            raise DriverError("no permission")
        self.mode = mode


async def test_a_shared_gpu_is_exclusive_and_gets_its_mode_back(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """Before the first client could come the mode is exclusive; when the daemon is gone it is what it was."""
    modes = Modes()
    modes.mode = PROHIBITED
    supervisor = await supervisors.start(modes=modes)
    assert (await state_of(supervisor)).ready
    assert modes.mode is EXCLUSIVE
    assert await supervisor.sync([]) == {}
    await eventually(lambda: modes.mode is PROHIBITED, "the mode that was found is restored")
    assert mps_node.pid(ONE) is None


async def test_the_mode_stays_exclusive_as_long_as_a_client_lives(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """A supervisor that stops under clients leaves the mode; the one after it knows what was found before both."""
    modes = Modes()
    first = await supervisors.start(modes=modes)
    assert (await state_of(first)).ready
    with mps_node.client(ONE):
        await first.stop()
        assert modes.mode is EXCLUSIVE
        second = await supervisors.start(modes=modes)
        assert (await state_of(second)).ready
    await second.stop()
    assert modes.mode is DEFAULT
    assert mps_node.pid(ONE) is None


async def test_a_mode_that_somebody_changes_is_made_right_again(supervisors: Supervising) -> None:
    """The mode is read again from time to time, and what was found first stays what is restored."""
    modes = Modes()
    supervisor = await supervisors.start(replace(FAST, verify_seconds=0.1), modes=modes)
    assert (await state_of(supervisor)).ready
    modes.mode = PROHIBITED
    await eventually(lambda: modes.mode is EXCLUSIVE, "the mode is exclusive again")
    await supervisor.sync([])
    await eventually(lambda: modes.mode is DEFAULT, "the mode that was found first is restored")


async def test_a_mode_that_cannot_be_set_keeps_containers_waiting(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """No daemon serves a GPU on which a client could run past it; the reason names the way out."""
    modes = Modes()
    modes.denied = True
    supervisor = await supervisors.start(modes=modes)
    state = await state_of(supervisor)
    assert not state.ready
    assert "cannot be made ExclusiveProcess: no permission" in state.reason
    assert "--compute-mode untouched" in state.reason
    assert mps_node.pid(ONE) is None
    modes.denied = False
    assert (await state_of(supervisor)).ready


async def test_untouched_modes_stay_and_earlier_changes_are_taken_back(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """With the setting off nothing is changed, but for what a supervisor with the setting on had changed."""
    modes = Modes()
    first = await supervisors.start(modes=modes)
    assert (await state_of(first)).ready
    with mps_node.client(ONE):
        await first.stop()
        untouched = replace(mps_node.settings, compute_mode=ComputeModeUse.UNTOUCHED)
        second = await supervisors.start(settings=untouched, modes=modes)
        assert (await state_of(second)).ready
        assert modes.mode is DEFAULT
        assert (await state_of(second, share(sm_percent=50))).ready
        assert modes.mode is DEFAULT


async def test_a_driver_that_hangs_keeps_one_gpu_waiting_and_no_thread_more(supervisors: Supervising) -> None:
    """The question ends after its time and is not put again before the driver has answered; then all is well."""
    modes = Modes()
    modes.answers.clear()
    supervisor = await supervisors.start(replace(FAST, driver_seconds=0.2), modes=modes)
    try:
        reasons = [(await state_of(supervisor)).reason for _ in range(5)]
        assert "the driver" in reasons[0]  # a look in the background may have asked before
        assert "has not answered the question before this one" in reasons[-1]
        assert [thread.name for thread in threading.enumerate()].count(THREAD_NAME) == 1
    finally:
        modes.answers.set()

    async def ready() -> bool:
        return (await state_of(supervisor)).ready

    await eventually(ready, "the GPU is ready when the driver answers")


async def test_a_whole_gpu_waits_for_the_daemon_to_go_and_is_default(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """A tenant of a whole GPU starts when no MPS client is left there: without a daemon, compute mode Default."""
    modes = Modes()
    modes.mode = PROHIBITED
    supervisor = await supervisors.start(replace(FAST, idle_seconds=600), modes=modes)
    assert (await state_of(supervisor)).ready
    with mps_node.client(ONE):
        state = await state_of(supervisor, whole_demand(ONE))
        assert not state.ready
        assert "its MPS daemon still has 1 client" in state.reason
    assert (await state_of(supervisor, whole_demand(ONE))).ready
    assert (mps_node.pid(ONE), modes.mode) == (None, DEFAULT)
    await supervisor.sync([])
    await eventually(lambda: modes.mode is PROHIBITED, "the mode that was found is restored")


async def test_a_simulated_mode_is_recorded_for_the_gpu(supervisors: Supervising, mps_node: SimulatedNode) -> None:
    """Without a GPU the mode is a file to look at."""
    supervisor = await supervisors.start()
    assert (await state_of(supervisor)).ready
    modes = SimulatedComputeModes(mps_node.root)
    assert modes.get(ONE) is EXCLUSIVE
    await supervisor.stop()
    assert modes.get(ONE) is DEFAULT


def test_the_real_binding_reads_and_sets_the_mode(start_driver: Callable[[Scenario], DriverProcess]) -> None:
    """Through nvidia-ml-py one GPU's mode changes, in the driver's own words, and no other's."""
    scenario = node_of("h100-sxm", 2)
    one, two = (gpu.uuid for gpu in scenario.gpus)
    driver = start_driver(scenario)
    assert driver.call(f"get_mode {one}") is DEFAULT
    driver.call(f"set_mode {one} {EXCLUSIVE}")
    assert (driver.call(f"get_mode {one}"), driver.call(f"get_mode {two}")) == (EXCLUSIVE, DEFAULT)
    driver.open()
    assert [gpu.compute_mode for gpu in driver.inventory().gpus] == [EXCLUSIVE, DEFAULT]


def test_a_driver_that_denies_is_told(start_driver: Callable[[Scenario], DriverProcess]) -> None:
    """NVML's refusal comes as the plugin's own error and says what was tried."""
    scenario = node_of("h100-sxm", 1)
    driver = start_driver(scenario.with_failure("nvmlDeviceSetComputeMode", NO_PERMISSION))
    with pytest.raises(DriverError, match="change the compute mode to ExclusiveProcess"):
        driver.call(f"set_mode {scenario.gpus[0].uuid} {EXCLUSIVE}")
