"""The simulated GPUs."""

import pytest

from cta_group_core.profiles import PROFILES
from cta_group_plugin.adapters.simulated import SimulatedSource, simulated_uuid
from cta_group_plugin.inventory import offer_of


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_every_profile_is_served_with_its_own_units(name: str) -> None:
    """A simulated product offers exactly what the profile says."""
    profile = PROFILES[name]
    made = offer_of(SimulatedSource(profile, 2, "node-a").inventory(), reserve_mib=1024)
    assert [gpu.units for gpu in made.served] == [profile.units] * 2
    assert [gpu.memory_total_mib for gpu in made.served] == [profile.memory_total_mib] * 2


def test_uuids_stay_the_same_and_differ_between_nodes() -> None:
    """Device ids outlive restarts, and no two nodes share one."""
    uuids = {simulated_uuid(node, index) for node in ("node-a", "node-b") for index in range(8)}
    assert len(uuids) == 16
    assert simulated_uuid("node-a", 0) == "GPU-dd45898f-4e09-5670-b641-62603933e159"


def test_they_say_that_they_are_simulated() -> None:
    """Nobody takes them for real ones."""
    inventory = SimulatedSource(PROFILES["h200"], 1, "node-a").inventory()
    assert inventory.simulated
    assert inventory.driver_version is None


@pytest.mark.parametrize(("count", "nodes"), [(1, [0]), (2, [0, 1]), (3, [0, 0, 1]), (8, [0, 0, 0, 0, 1, 1, 1, 1])])
def test_half_of_them_is_on_each_of_two_numa_nodes(count: int, nodes: list[int]) -> None:
    """As on machines with two processors; nothing closer is pretended."""
    source = SimulatedSource(PROFILES["h200"], count, "node-a")
    gpus = source.inventory().gpus
    assert [gpu.numa_node for gpu in gpus] == nodes
    assert source.links([gpu.uuid for gpu in gpus]) == {}


def test_closing_ends_a_wait() -> None:
    """A stopping plugin does not wait for events that never come."""
    source = SimulatedSource(PROFILES["h200"], 1, "node-a")
    source.close()
    assert source.wait_events(60.0) == ()
