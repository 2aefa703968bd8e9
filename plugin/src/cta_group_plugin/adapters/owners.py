"""Which other plugins give a GPU out, by kubelet's own account of what can be allocated."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import grpc.aio

from cta_group_core.errors import InvalidText
from cta_group_core.ids import GpuUuid, parse_gpu_uuid
from cta_group_plugin.kubelet_api import podresources_v1_pb2 as api
from cta_group_plugin.kubelet_api.podresources_v1_pb2_grpc import PodResourcesListerStub

_TIMEOUT_SECONDS: Final = 5.0
_UUID_LENGTH: Final = len("GPU-00000000-0000-0000-0000-000000000000")


async def owners_of_gpus(socket: Path, resource_name: str) -> Mapping[GpuUuid, frozenset[str]]:
    """Return, for each GPU that another resource than ``resource_name`` names by its UUID, those resources.

    Empty where kubelet does not tell (before 1.23, or with the question switched off).
    """
    async with grpc.aio.insecure_channel(f"unix://{socket}", options=[("grpc.default_authority", "localhost")]) as it:
        try:
            request = api.AllocatableResourcesRequest()
            answer = await PodResourcesListerStub(it).GetAllocatableResources(request, timeout=_TIMEOUT_SECONDS)
        except grpc.aio.AioRpcError:
            return {}
    found: dict[GpuUuid, set[str]] = {}
    for devices in answer.devices:
        if devices.resource_name != resource_name:
            for gpu in filter(None, map(_gpu_of, devices.device_ids)):
                found.setdefault(gpu, set()).add(devices.resource_name)
    return {gpu: frozenset(names) for gpu, names in found.items()}


def _gpu_of(device_id: str) -> GpuUuid | None:
    """Return the GPU that a device of another plugin is of; plugins put a suffix behind its UUID for replicas."""
    try:
        return parse_gpu_uuid(device_id[:_UUID_LENGTH])
    except InvalidText:
        return None
