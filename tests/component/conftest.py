"""Fixtures of the component tests."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fake_nvml.driver_process import DriverProcess, driver_process
from fake_nvml.library import build_library
from fake_nvml.scenario import Scenario
from mps_supervising import Supervising, supervising
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
