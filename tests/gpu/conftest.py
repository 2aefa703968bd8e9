"""The one GPU of these tests, a node around it for each test, and the figures of the run."""

from collections.abc import AsyncIterator, Iterator

import pytest

from cta_group_plugin.adapters.nvml import NvmlSource
from cta_group_plugin.errors import DriverError
from cta_group_plugin.inventory import ServedGpu
from gpu_figures import Figures
from gpu_machine import NoGpuForTests, gpu_for_tests
from gpu_node import GpuNode, gpu_node


@pytest.fixture(scope="session")
def figures() -> Iterator[Figures]:
    """Take what the tests measure; written to build/e2e-gpu.json at the end of the run."""
    told = Figures()
    yield told
    told.write()


@pytest.fixture(scope="session")
def driver() -> Iterator[NvmlSource]:
    """Open the driver for the whole run."""
    source = NvmlSource()
    try:
        source.open()
    except DriverError as problem:
        pytest.exit(str(problem), returncode=2)
    yield source
    source.close()


@pytest.fixture(scope="session")
def gpu(driver: NvmlSource, figures: Figures) -> ServedGpu:
    """Return the GPU that the first pod of a test gets; without one the run ends."""
    inventory = driver.inventory()
    try:
        chosen = gpu_for_tests(driver, inventory)
    except NoGpuForTests as problem:
        pytest.exit(str(problem), returncode=2)
    figures.note(
        "gpu",
        product=chosen.facts.product,
        driver=inventory.driver_version,
        cuda=inventory.cuda_version,
        sm_count=chosen.units.sm_count,
        capacity=chosen.units.capacity,
        memory_total_mib=chosen.memory_total_mib,
        compute_mode=chosen.facts.compute_mode,
    )
    return chosen


@pytest.fixture
async def node(gpu: ServedGpu) -> AsyncIterator[GpuNode]:
    """Give the test a node with plugin and supervisor running; every process of it ends with the test."""
    assert gpu.units.capacity
    async with gpu_node() as made:
        yield made


@pytest.fixture
def quarter(gpu: ServedGpu) -> int:
    """Return a request of about a quarter of the GPU."""
    return groups_for(gpu, 4)


@pytest.fixture
def eighth(gpu: ServedGpu) -> int:
    """Return a request of about an eighth of the GPU."""
    return groups_for(gpu, 2)


def groups_for(gpu: ServedGpu, sixteenths: int) -> int:
    """Return the largest request of at most that many sixteenths of the GPU, or the smallest that is allowed."""
    step = gpu.units.step
    return max(gpu.units.minimum, gpu.units.capacity * sixteenths // 16 // step * step)
