"""When the driver is asked how GPUs are connected, and what is made of its answer."""

from dataclasses import replace
from itertools import combinations

import pytest

from cta_group_core.links import NO_LINKS, Closeness
from cta_group_plugin.driver_threads import Asker
from cta_group_plugin.errors import DriverError, DriverGone
from cta_group_plugin.neighbours import Neighbours, links_of
from cta_group_plugin.testing import FakeGpuSource
from plugin_values import gpu, node_of, uuid_of

GPUS = [gpu(index) for index in range(3)]
BRIDGE = frozenset({uuid_of(1), uuid_of(2)})


@pytest.fixture
def source() -> FakeGpuSource:
    """Return a driver of three GPUs, two of them with a bridge."""
    made = FakeGpuSource(node_of(3))
    made.linked = {BRIDGE: Closeness.NVLINK}
    return made


async def test_driver_is_asked_once_for_the_same_gpus(source: FakeGpuSource) -> None:
    """And not again when one is in trouble; again when one came that was not there."""
    neighbours = Neighbours(source, Asker())
    first = await neighbours.links_between(GPUS[:2])
    assert first == NO_LINKS
    links = await neighbours.links_between(GPUS)
    assert links.between(uuid_of(2), uuid_of(1)) is Closeness.NVLINK
    assert await neighbours.links_between(GPUS[1:]) is links
    assert len(source.asked_for_links) == 2


async def test_failure_is_no_preference(source: FakeGpuSource) -> None:
    """And is not tried again at every poll."""
    source.linked = DriverError("NVML: unknown error")
    neighbours = Neighbours(source, Asker())
    assert [await neighbours.links_between(GPUS) for _ in range(2)] == [NO_LINKS] * 2
    assert len(source.asked_for_links) == 1


async def test_driver_that_failed_once_is_asked_again_later(source: FakeGpuSource) -> None:
    """One that was busy at the start of the plugin is not left without preference for good."""
    told, source.linked = source.linked, DriverError("NVML: unknown error")
    neighbours = Neighbours(source, Asker(), retry_seconds=0.0)
    assert await neighbours.links_between(GPUS) == NO_LINKS
    source.linked = told
    assert (await neighbours.links_between(GPUS)).between(*BRIDGE) is Closeness.NVLINK
    await neighbours.links_between(GPUS)
    assert len(source.asked_for_links) == 2


async def test_driver_that_is_gone_is_told(source: FakeGpuSource) -> None:
    """Whoever polls ends the process."""
    source.linked = DriverGone("the driver was unloaded")
    with pytest.raises(DriverGone):
        await Neighbours(source, Asker()).links_between(GPUS)


def test_numa_nodes_count_where_the_driver_tells_nothing() -> None:
    """What it does tell of a pair counts more."""
    gpus = [replace(one, numa_node=node) for one, node in zip(GPUS, (0, 0, None), strict=True)]
    links = links_of(gpus, {BRIDGE: Closeness.SWITCH})
    told = [links.between(one.uuid, other.uuid) for one, other in combinations(gpus, 2)]
    assert told == [Closeness.NUMA, Closeness.FAR, Closeness.SWITCH]
    pair = frozenset({uuid_of(0), uuid_of(1)})
    assert links_of(gpus, {pair: Closeness.NVLINK}).between(uuid_of(0), uuid_of(1)) is Closeness.NVLINK
