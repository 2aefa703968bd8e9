"""A question that a GPU does not support is a fact about that GPU: it costs at most that GPU, and never the node."""

from collections.abc import Callable

import pytest

from cta_group_plugin.inventory import Offer, offer_of
from cta_group_plugin.ports import Inventory
from fake_nvml.driver_process import DriverProcess
from fake_nvml.scenario import NOT_SUPPORTED, Scenario, node_of

StartDriver = Callable[[Scenario], DriverProcess]

_DISPENSABLE = (
    *("nvmlDeviceGetMinorNumber", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMigMode", "nvmlDeviceGetNumGpuCores"),
    *("nvmlDeviceGetGpuInstanceProfileInfo", "nvmlDeviceGetGpuInstanceProfileInfoV"),
    *("nvmlDeviceGetCurrPcieLinkWidth", "nvmlDeviceGetMaxPcieLinkWidth"),
    *("nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkGeneration"),
    *("nvmlDeviceGetComputeMode", "nvmlDeviceGetPersistenceMode"),
)
"""Facts that a slice can be computed without, as long as not all of a kind are missing."""
_NEEDED = ("nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetCudaComputeCapability")
_EVERY_CALL = "*"


def answered(start_driver: StartDriver, *calls: str) -> Inventory:
    """Return what a node of two H200 tells, the first of which supports none of ``calls``."""
    scenario = node_of("h200", 2)
    for call in calls:
        scenario = scenario.with_failure(call, NOT_SUPPORTED, gpu=0)
    driver = start_driver(scenario)
    driver.open()
    return driver.inventory()


def offered(inventory: Inventory) -> Offer:
    """Return what is served of it with the default settings."""
    return offer_of(inventory, reserve_mib=1024)


@pytest.mark.parametrize("call", _DISPENSABLE)
def test_a_fact_that_can_be_missed_is_missed(start_driver: StartDriver, call: str) -> None:
    """Both GPUs serve all their groups."""
    inventory = answered(start_driver, call)
    assert inventory.broken == ()
    assert [gpu.units.capacity for gpu in offered(inventory).served] == [128, 128]


def test_memory_that_is_not_told_names_the_setting_and_leaves_the_other(start_driver: StartDriver) -> None:
    """The GPU is there with its SMs; nothing is guessed, and the host's memory is not taken for its own."""
    offer = offered(answered(start_driver, "nvmlDeviceGetMemoryInfo_v2"))
    assert [gpu.facts.index for gpu in offer.served] == [1]
    (withheld,) = offer.withheld
    assert (withheld.facts.index, withheld.sm_count) == (0, 132)
    assert "memoryMiBOverride in gpus.overrides" in withheld.reason


def test_sms_that_nothing_tells_name_the_setting_and_leave_the_other(start_driver: StartDriver) -> None:
    """Neither cores nor a profile: no number to sell."""
    calls = (
        "nvmlDeviceGetNumGpuCores",
        "nvmlDeviceGetGpuInstanceProfileInfo",
        "nvmlDeviceGetGpuInstanceProfileInfoV",
    )
    offer = offered(answered(start_driver, *calls))
    assert [gpu.facts.index for gpu in offer.served] == [1]
    (withheld,) = offer.withheld
    assert withheld.sm_count == 0
    assert "smCountOverride in gpus.overrides" in withheld.reason


@pytest.mark.parametrize("call", [*_NEEDED, _EVERY_CALL])
def test_a_gpu_that_does_not_say_what_it_is_leaves_the_other(start_driver: StartDriver, call: str) -> None:
    """It is told as broken, with NVML's own words."""
    inventory = answered(start_driver, call)
    (broken,) = inventory.broken
    assert broken.index == 0
    assert "Not Supported" in broken.reason
    assert [gpu.units.capacity for gpu in offered(inventory).served] == [128]
