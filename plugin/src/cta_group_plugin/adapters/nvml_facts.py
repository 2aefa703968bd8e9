"""Reads the facts of one GPU from NVML, in the project's own types."""

from functools import partial
from pathlib import Path
from typing import Any

import pynvml

from cta_group_core.ids import GpuUuid, parse_gpu_uuid
from cta_group_core.units import ComputeCapability, SmCountSources
from cta_group_plugin.adapters.nvml_errors import NOT_TOLD, code_of, told, told_if_possible
from cta_group_plugin.ports import ComputeMode, GpuFacts
from cta_group_plugin.report import PcieLink

_BYTES_PER_MIB = 1 << 20

COMPUTE_MODES = {
    pynvml.NVML_COMPUTEMODE_DEFAULT: ComputeMode.DEFAULT,
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD: ComputeMode.EXCLUSIVE_THREAD,
    pynvml.NVML_COMPUTEMODE_PROHIBITED: ComputeMode.PROHIBITED,
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: ComputeMode.EXCLUSIVE_PROCESS,
}
"""The modes by NVML's numbers."""


def read_uuid(handle: Any) -> GpuUuid:
    """Return the GPU's UUID. Raises NVMLError, or InvalidText for one that is not a GPU's."""
    return parse_gpu_uuid(text_of(pynvml.nvmlDeviceGetUUID(handle)))


def read_facts(handle: Any, index: int, sysfs_root: Path) -> GpuFacts:
    """Return every fact of one GPU. Raises NVMLError when the GPU fails a question that must be answered."""
    profile = largest_instance_profile(handle)
    mig_now, mig_pending = told(lambda: pynvml.nvmlDeviceGetMigMode(handle)) or (0, 0)
    pci_bus_id = read_pci_bus_id(handle)
    memory_mib, reserved_mib, shares_host_memory = read_memory(handle)
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return GpuFacts(
        uuid=read_uuid(handle),
        index=index,
        product=text_of(pynvml.nvmlDeviceGetName(handle)),
        capability=ComputeCapability(major=major, minor=minor),
        sm_sources=SmCountSources(
            profile_sms=profile.multiprocessorCount if profile else None,
            cuda_cores=told(lambda: int(pynvml.nvmlDeviceGetNumGpuCores(handle))),
        ),
        memory_total_mib=memory_mib,
        driver_reserved_mib=reserved_mib,
        mig_enabled=mig_now == pynvml.NVML_DEVICE_MIG_ENABLE,
        mig_pending=mig_pending == pynvml.NVML_DEVICE_MIG_ENABLE,
        minor=told_if_possible(lambda: int(pynvml.nvmlDeviceGetMinorNumber(handle))),
        pci_bus_id=pci_bus_id,
        link=read_link(handle),
        numa_node=read_numa_node(sysfs_root, pci_bus_id),
        copy_engines=profile.copyEngineCount if profile else None,
        compute_mode=COMPUTE_MODES.get(told_if_possible(lambda: pynvml.nvmlDeviceGetComputeMode(handle))),
        persistence_mode=read_persistence(handle),
        shares_host_memory=shares_host_memory,
    )


def read_memory(handle: Any) -> tuple[int | None, int | None, bool]:
    """Return the memory that CUDA reports, the driver's own part beside it, whole MiB, and whether the host shares it.

    None where the driver has no such figure, because the GPU uses the host's memory (then the third is true), or
    because it is too old to tell its own part.
    """
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if code_of(error) in NOT_TOLD:
            return None, None, code_of(error) == pynvml.NVML_ERROR_NOT_SUPPORTED
        raise
    return (memory.total - memory.reserved) // _BYTES_PER_MIB, memory.reserved // _BYTES_PER_MIB, False


def largest_instance_profile(handle: Any) -> Any | None:
    """Return the GPU instance profile with the most slices, or None on a part without MIG.

    It answers with MIG off too. Its number differs (7 slices mostly, 4 on an A30, 2 on small parts), so all are asked.
    """
    answers = [_instance_profile(handle, number) for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT)]
    known = [profile for profile in answers if profile is not None]
    return max(known, key=lambda profile: (profile.sliceCount, profile.multiprocessorCount), default=None)


def _instance_profile(handle: Any, number: int) -> Any | None:
    for version in (2, 1):  # drivers before R470 know only the first structure
        profile = told_if_possible(partial(pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, number, version))
        if profile is not None:
            return profile
    return None


def read_pci_bus_id(handle: Any) -> str | None:
    """Return the bus id in sysfs' form. NVML writes the domain with eight digits and in upper case."""
    info = told_if_possible(lambda: pynvml.nvmlDeviceGetPciInfo(handle))
    if info is None:
        return None
    domain, _, rest = text_of(info.busId).partition(":")
    return f"{int(domain, 16):04x}:{rest.lower()}"


def read_link(handle: Any) -> PcieLink | None:
    """Return the PCIe link, or None when any of its four numbers is not told."""
    calls = (
        pynvml.nvmlDeviceGetCurrPcieLinkWidth,
        pynvml.nvmlDeviceGetMaxPcieLinkWidth,
        pynvml.nvmlDeviceGetCurrPcieLinkGeneration,
        pynvml.nvmlDeviceGetMaxPcieLinkGeneration,
    )
    width, width_max, generation, generation_max = (told_if_possible(partial(call, handle)) for call in calls)
    if width is None or width_max is None or generation is None or generation_max is None:
        return None
    return PcieLink(width=width, width_max=width_max, generation=generation, generation_max=generation_max)


def read_numa_node(sysfs_root: Path, pci_bus_id: str | None) -> int | None:
    """Return the NUMA node beside the GPU, from sysfs; None where the machine has none (-1) or does not tell.

    NVML's own call is about GPUs whose memory is a NUMA node, which is another thing.
    """
    if pci_bus_id is None:
        return None
    try:
        node = int((sysfs_root / "bus/pci/devices" / pci_bus_id / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def read_persistence(handle: Any) -> bool | None:
    """Return whether the driver keeps the GPU initialised without a client."""
    mode = told_if_possible(lambda: pynvml.nvmlDeviceGetPersistenceMode(handle))
    return None if mode is None else mode == pynvml.NVML_FEATURE_ENABLED


def text_of(answer: str | bytes) -> str:
    """Return text that NVML's binding gives as bytes in places (fields of structures) and as str in others."""
    return answer.decode("utf-8", errors="replace") if isinstance(answer, bytes) else answer
