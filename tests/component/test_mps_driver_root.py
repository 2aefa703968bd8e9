"""A driver under a folder of the host: found there, only read, and told with the places when it is not complete."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cta_group_core.ids import GpuUuid
from cta_group_plugin.mps.supervisor import MpsSupervisor
from cta_group_plugin.ports import ComputeMode, whole_demand
from driver_on_host import CONTROL, PROGRAMS, SERVER, HostDriver, without_execute, without_server
from mps_supervising import ONE, Supervising, state_of
from simulated_mps import SimulatedNode, environment_of, eventually


class DefaultModes:
    """GPUs whose compute mode can be set; nothing comes of it."""

    def __init__(self) -> None:
        self.modes: dict[GpuUuid, ComputeMode] = {}

    def get(self, gpu: GpuUuid) -> ComputeMode:
        """Return what was set last."""
        return self.modes.get(gpu, ComputeMode.DEFAULT)

    def set(self, gpu: GpuUuid, mode: ComputeMode) -> None:
        """Remember it."""
        self.modes[gpu] = mode


@pytest.fixture
def driver(tmp_path: Path) -> HostDriver:
    """Give the test a driver."""
    return HostDriver.under(tmp_path / "driver")


async def started(supervisors: Supervising, root: Path | None) -> MpsSupervisor:
    """Start a supervisor that runs the programs of a driver."""
    settings = replace(supervisors.node.settings, simulated=False, driver_root=root, environment={"PATH": "/nowhere"})
    return await supervisors.start(settings=settings, modes=DefaultModes())


async def test_a_driver_in_unusual_folders_serves_and_is_only_read(
    supervisors: Supervising, mps_node: SimulatedNode, driver: HostDriver
) -> None:
    """Programs and libraries are found below the root alone, the C library there is nobody's, nothing is written."""
    before = driver.files()
    supervisor = await started(supervisors, driver.root)
    state = await state_of(supervisor)
    assert (state.ready, state.reason) == (True, "")
    assert driver.files() == before
    environment = environment_of(mps_node.pid(ONE) or 0)
    assert environment["PATH"].split(":")[1] == str(driver.root / PROGRAMS)
    (libraries,) = map(Path, environment["LD_LIBRARY_PATH"].split(":"))
    assert sorted(path.name for path in libraries.iterdir()) == ["libcuda.so.1", "libnvidia-ml.so.1"]
    assert not libraries.is_relative_to(driver.root)
    assert environment["CUDA_MPS_PIPE_DIRECTORY"] == str(mps_node.pipe(ONE))
    assert "/tmp/nvidia-mps" not in environment.values()  # noqa: S108 - what must not be used


def without_control(driver: HostDriver) -> None:
    """Leave the control program out."""
    driver.control.unlink()


def of_another_kind(driver: HostDriver) -> None:
    """Make the control program one for another machine."""
    driver.control.write_bytes(b"\x7fELF of another machine")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (
            without_control,
            f"MPS control program was not found; looked for {{root}}/usr/bin/{CONTROL}, {{root}}/{PROGRAMS}",
        ),
        (without_execute, f"{{root}}/{PROGRAMS}/{CONTROL} is there but cannot be executed"),
        (without_server, f"MPS server program was not found; looked for {{root}}/usr/bin/{SERVER}"),
        (of_another_kind, "Exec format error"),
    ],
)
async def test_an_incomplete_driver_is_told_and_whole_gpus_are_given_out(
    supervisors: Supervising,
    mps_node: SimulatedNode,
    driver: HostDriver,
    spoil: Callable[[HostDriver], None],
    told: str,
) -> None:
    """Fractions wait with the reason, whole GPUs do not, nothing is written, and a repair needs no restart."""
    spoil(driver)
    before = driver.files()
    supervisor = await started(supervisors, driver.root)
    state = await state_of(supervisor)
    assert not state.ready
    assert told.format(root=driver.root) in state.reason
    assert (await state_of(supervisor, whole_demand(ONE))).ready
    assert driver.files() == before
    assert mps_node.pid(ONE) is None
    shutil.rmtree(driver.root)
    HostDriver.under(driver.root)

    async def ready() -> bool:
        return (await state_of(supervisor)).ready

    await eventually(ready, "the complete driver serves")


async def test_a_daemon_that_cannot_be_started_is_tried_less_and_less(
    supervisors: Supervising, driver: HostDriver
) -> None:
    """Without the server program the wait grows to its cap, the reason keeps the places, and nothing was started."""
    without_server(driver)
    supervisor = await started(supervisors, driver.root)

    async def at_the_cap() -> bool:
        reason = (await state_of(supervisor)).reason
        assert "MPS server program was not found" in reason
        return "tried again 1 s after that" in reason

    await eventually(at_the_cap, "the wait has grown to its cap")
    assert not supervisors.count("mps_daemon_starts_total")


async def test_a_wrong_root_is_mended_by_the_setting_alone(supervisors: Supervising, driver: HostDriver) -> None:
    """With the driver in no usual place the state names the setting; another supervisor with it serves."""
    wrong = await started(supervisors, None)
    reason = (await state_of(wrong)).reason
    assert f"looked for /nowhere/{CONTROL}, /usr/bin/{CONTROL}" in reason
    assert "set --control-binary or --driver-root" in reason
    await wrong.stop()
    assert (await state_of(await started(supervisors, driver.root))).ready
