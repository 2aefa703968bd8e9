"""Fixtures of the component tests."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cta_group_plugin.mps.supervisor import MpsSupervisor
from examined_node import ExaminedNode, examined_node, supervised
from fake_nvml.driver_process import DriverProcess, driver_process
from fake_nvml.library import build_library
from fake_nvml.scenario import Scenario
from mps_supervising import Supervising, supervising
from plugin_running import short_folder
from simulated_mps import SimulatedNode, simulated_node

StartDriver = Callable[[Scenario], DriverProcess]


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the fake NVIDIA library once and return its folder."""
    return build_library(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def start_driver(nvml_library: Path, tmp_path: Path) -> Iterator[StartDriver]:
    """Start the real adapter over the fake library with a scenario; ended with the test."""
    with ExitStack() as running:
        yield lambda scenario: running.enter_context(driver_process(nvml_library, scenario, tmp_path))


@pytest.fixture
def mps_node() -> Iterator[SimulatedNode]:
    """Give the test a node for simulated MPS daemons; every daemon in it ends with the test."""
    with simulated_node() as made:
        yield made


@pytest.fixture
async def supervisors(mps_node: SimulatedNode) -> AsyncIterator[Supervising]:
    """Start supervisors of the node that stop with the test."""
    async with supervising(mps_node) as started:
        yield started


@pytest.fixture
async def examined(nvml_library: Path, mps_node: SimulatedNode) -> AsyncIterator[ExaminedNode]:
    """Give the test a node for the doctor."""
    with short_folder() as root:
        async with examined_node(root, nvml_library, mps_node.root) as made:
            yield made


@pytest.fixture
async def supervisor(supervisors: Supervising) -> AsyncIterator[MpsSupervisor]:
    """Serve the MPS supervisor of the node."""
    async with supervised(supervisors) as serving:
        yield serving
