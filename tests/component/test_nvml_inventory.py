"""The NVML adapter and the real binding over the fake library: what it makes of the driver's answers."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cta_group_core.errors import UnknownComputeCapability
from cta_group_core.profiles import PROFILES
from cta_group_core.units import ComputeCapability, granularity_of, sm_count_of, units_of
from cta_group_plugin.ports import GpuFacts, GpuProcess
from fake_nvml.driver_process import DriverProcess, driver_process
from fake_nvml.library import build_library
from fake_nvml.recorded import recorded_h200
from fake_nvml.scenario import NOT_SUPPORTED, UNKNOWN, FakeGpu, InstanceProfile, Scenario, node_of

StartDriver = Callable[[Scenario], DriverProcess]


def only_gpu(driver: DriverProcess) -> GpuFacts:
    """Open the driver and return the node's one GPU."""
    driver.open()
    (gpu,) = driver.inventory().gpus
    return gpu


def test_recorded_h200_has_132_sms_by_both_sources(start_driver: StartDriver) -> None:
    """The recorded H200 tells 132 SMs by profile and by cores, 128 groups, and the memory that CUDA saw."""
    driver = start_driver(Scenario(gpus=(recorded_h200(),)))
    gpu = only_gpu(driver)
    assert gpu.product == "NVIDIA H200"
    assert gpu.sm_sources.profile_sms == 132
    assert gpu.sm_sources.cuda_cores == 132 * 128
    sms = sm_count_of(gpu.capability, gpu.sm_sources)
    assert units_of(sms, granularity_of(gpu.capability)).capacity == 128
    assert gpu.memory_total_mib == 143155
    assert gpu.copy_engines == 8
    assert gpu.pci_bus_id == "0000:00:06.0"
    assert (gpu.compute_mode, gpu.persistence_mode, gpu.minor) == ("Default", True, 0)
    assert not gpu.mig_enabled


def test_versions_are_told(start_driver: StartDriver) -> None:
    """The node's driver and CUDA versions come as people write them."""
    driver = start_driver(Scenario(gpus=(recorded_h200(),), cuda=12040))
    driver.open()
    inventory = driver.inventory()
    assert (inventory.driver_version, inventory.cuda_version) == ("580.159.04", "12.4")
    assert not inventory.simulated


def test_each_known_product_gives_its_own_numbers(start_driver: StartDriver) -> None:
    """Every product of the profiles table comes out of NVML as the table says it."""
    profiles = list(PROFILES.values())
    driver = start_driver(Scenario(gpus=tuple(FakeGpu.like(one, index) for index, one in enumerate(profiles))))
    driver.open()
    gpus = driver.inventory().gpus
    assert len(gpus) == len(profiles)
    for gpu, profile in zip(gpus, profiles, strict=True):
        sms = sm_count_of(gpu.capability, gpu.sm_sources)
        assert (gpu.product, sms) == (profile.product, profile.sm_count)
        assert units_of(sms, granularity_of(gpu.capability)) == profile.units
        assert gpu.memory_total_mib == profile.memory_total_mib
        assert gpu.copy_engines == profile.copy_engines
        assert gpu.link is not None
        assert (gpu.link.generation, gpu.link.width) == (profile.pcie_generation, profile.pcie_width)


def test_the_largest_instance_is_found_by_its_slices(start_driver: StartDriver) -> None:
    """A part whose largest instance has four slices is not measured by its seventh or its smallest."""
    four_slices = (
        InstanceProfile(0, id=14, slices=1, instances=4, sms=46, engines=1, memory_mib=24000),
        InstanceProfile(3, id=0, slices=4, instances=1, sms=188, engines=4, memory_mib=96000),
        InstanceProfile(12, id=32, slices=4, instances=1, sms=186, engines=4, memory_mib=96000),
    )
    pro = replace(recorded_h200(), profiles=four_slices, cores=188 * 128, capability=ComputeCapability(12, 0))
    gpu = only_gpu(start_driver(Scenario(gpus=(pro,))))
    assert gpu.sm_sources.profile_sms == 188
    assert gpu.copy_engines == 4


def test_one_bad_gpu_leaves_the_others_serving(start_driver: StartDriver) -> None:
    """MIG, an unknown compute capability and a lost GPU are told one by one; the healthy GPU is untouched."""
    healthy, mig, unknown, lost = node_of("h100-sxm", 4).gpus
    node = Scenario(
        gpus=(
            healthy,
            replace(mig, mig=(True, True), cores=None),
            replace(unknown, capability=ComputeCapability(13, 7), profiles=()),
            lost,
        )
    )
    driver = start_driver(node.with_lost_gpu(3))
    driver.open()
    inventory = driver.inventory()
    first, second, third = inventory.gpus
    assert sm_count_of(first.capability, first.sm_sources) == 132
    assert second.mig_enabled
    with pytest.raises(UnknownComputeCapability):
        sm_count_of(third.capability, third.sm_sources)
    (broken,) = inventory.broken
    assert broken.index == 3
    assert "lost" in broken.reason.lower()


def test_a_gpu_that_breaks_later_keeps_its_name(start_driver: StartDriver) -> None:
    """A GPU that answered before is reported broken under its UUID, so that its groups can be withdrawn."""
    node = node_of("l4", 2)
    driver = start_driver(node)
    driver.open()
    assert not driver.inventory().broken
    driver.become(node.with_lost_gpu(1))
    (broken,) = driver.inventory().broken
    assert broken.uuid == node.gpus[1].uuid


def test_pending_mig_mode_is_told(start_driver: StartDriver) -> None:
    """A GPU whose MIG mode changes with the next reset says both, the mode now and the one to come."""
    gpu = only_gpu(start_driver(Scenario(gpus=(replace(recorded_h200(), mig=(False, True)),))))
    assert (gpu.mig_enabled, gpu.mig_pending) == (False, True)


def test_facts_that_a_gpu_does_not_tell_are_none(start_driver: StartDriver) -> None:
    """On a unified-memory part without MIG, PCIe figures and cores, each missing fact is None and nothing fails."""
    bare = replace(
        recorded_h200(), memory_bytes=None, cores=None, link=None, profiles=(), pci="0000000F:01:00.0", uuid="GPU-bare"
    )
    scenario = Scenario(gpus=(bare,)).with_failure("nvmlDeviceGetPersistenceMode", NOT_SUPPORTED)
    gpu = only_gpu(start_driver(scenario.with_failure("nvmlDeviceGetComputeMode", UNKNOWN)))
    assert (gpu.memory_total_mib, gpu.link, gpu.copy_engines) == (None, None, None)
    assert (gpu.sm_sources.profile_sms, gpu.sm_sources.cuda_cores) == (None, None)
    assert (gpu.persistence_mode, gpu.compute_mode) == (None, None)
    assert gpu.pci_bus_id == "000f:01:00.0"


def test_numa_node_comes_from_sysfs(start_driver: StartDriver, tmp_path: Path) -> None:
    """The NUMA node is what sysfs says, in PCI domains above 0 too; -1 and a missing file mean that there is none."""
    for bus_id, node in (("0000:1b:00.0", "1\n"), ("0000:1c:00.0", "-1\n"), ("000f:01:00.0", "3\n")):
        device = tmp_path / "sys/bus/pci/devices" / bus_id
        device.mkdir(parents=True)
        (device / "numa_node").write_text(node, encoding="ascii")
    far = replace(recorded_h200(), pci="0000000F:01:00.0", uuid="GPU-far")
    driver = start_driver(Scenario(gpus=(*node_of("h200", 3).gpus, far)))
    driver.open()
    assert [gpu.numa_node for gpu in driver.inventory().gpus] == [1, None, None, 3]


def test_a_driver_older_than_a_call_serves_with_less(nvml_library: Path, tmp_path: Path) -> None:
    """Calls that an old driver's library does not have at all become unknown facts."""
    missing = ("nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlDeviceGetMPSComputeRunningProcesses_v3")
    old = build_library(tmp_path / "old", without=(*missing, "nvmlDeviceGetMigMode"))
    assert old != nvml_library
    node = Scenario(gpus=(replace(recorded_h200(), processes=((41, 3 << 20, False),)),))
    with driver_process(old, node, tmp_path) as driver:
        gpu = only_gpu(driver)
        assert sm_count_of(gpu.capability, gpu.sm_sources) == 132
        assert gpu.sm_sources.profile_sms == 132, "the first structure of the call answers instead"
        assert not gpu.mig_enabled
        assert driver.processes(gpu.uuid) == (GpuProcess(pid=41, memory_mib=3),)


def test_processes_and_mps_clients_come_together(start_driver: StartDriver) -> None:
    """The MPS server and its clients are listed once each, with their memory in MiB."""
    busy = replace(recorded_h200(), processes=((300, 40 << 20, False), (7, 512 << 20, True), (8, 1 << 20, True)))
    driver = start_driver(Scenario(gpus=(busy,)))
    driver.open()
    clients = (GpuProcess(7, 512, is_mps_client=True), GpuProcess(8, 1, is_mps_client=True))
    assert driver.processes(busy.uuid) == (*clients, GpuProcess(300, 40))
