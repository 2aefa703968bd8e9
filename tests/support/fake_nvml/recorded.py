"""The H200 whose answers were recorded from a real driver, 580.159.04."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cta_group_core.units import ComputeCapability
from fake_nvml.scenario import FakeGpu, InstanceProfile

_RECORDING = Path(__file__).parent / "recorded-h200.json"


def recorded_h200() -> FakeGpu:
    """Return the recorded GPU; what was "Not Supported" there is not supported here."""
    facts = json.loads(_RECORDING.read_text(encoding="utf-8"))["gpus"][0]
    memory = facts["nvmlDeviceGetMemoryInfo_v2"]
    major, minor = facts["nvmlDeviceGetCudaComputeCapability"]
    generation, width = facts["nvmlDeviceGetMaxPcieLinkGeneration"], facts["nvmlDeviceGetMaxPcieLinkWidth"]
    mig_now, mig_pending = facts["nvmlDeviceGetMigMode"]
    return FakeGpu(
        uuid=facts["nvmlDeviceGetUUID"],
        product=facts["nvmlDeviceGetName"],
        capability=ComputeCapability(major=major, minor=minor),
        cores=facts["nvmlDeviceGetNumGpuCores"],
        memory_bytes=(memory["total"], memory["reserved"], memory["used"]),
        pci=facts["nvmlDeviceGetPciInfo_v3"]["busId"],
        minor=facts["nvmlDeviceGetMinorNumber"],
        # The current generation was not recorded; an idle link drops it, so this one is the highest.
        link=(facts["nvmlDeviceGetCurrPcieLinkWidth"], width, generation, generation),
        profiles=tuple(_profiles(facts["gpu_instance_profiles"])),
        mig=(bool(mig_now), bool(mig_pending)),
        compute_mode=facts["nvmlDeviceGetComputeMode"],
        persistence=facts["nvmlDeviceGetPersistenceMode"],
        events=facts["nvmlDeviceGetSupportedEventTypes"],
    )


def _profiles(answers: dict[str, Any]) -> Iterator[InstanceProfile]:
    for number, answer in answers.items():
        if isinstance(answer, dict):
            yield InstanceProfile(
                number=int(number),
                id=answer["id"],
                slices=answer["sliceCount"],
                instances=answer["instanceCount"],
                sms=answer["multiprocessorCount"],
                engines=answer["copyEngineCount"],
                memory_mib=answer["memorySizeMB"],
            )
