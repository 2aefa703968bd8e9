"""The floor: the least that a device plugin on grpcio can cost, with the same messages and no thought behind them.

It answers GetPreferredAllocation with the first ids that it is offered and Allocate with one fixed answer of the same
size as the real one's. ``python bench/floor_plugin.py FOLDER`` registers with the kubelet whose socket is in FOLDER.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio

from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.kubelet_api.deviceplugin_v1beta1_pb2_grpc import (
    DevicePluginServicer,
    RegistrationStub,
    add_DevicePluginServicer_to_server,
)

_GPUS = [f"GPU-{index:08d}-0000-0000-0000-000000000000" for index in range(8)]
_DEVICES = api.ListAndWatchResponse(
    devices=[api.Device(ID=f"{gpu}::{number}", health="Healthy") for gpu in _GPUS for number in range(128)]
)
_PIPE = f"/run/cta-group/mps/{_GPUS[0]}/pipe"
_ANSWER = api.ContainerAllocateResponse(
    envs={
        "NVIDIA_VISIBLE_DEVICES": _GPUS[0],
        "CUDA_MPS_PIPE_DIRECTORY": _PIPE,
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"{_GPUS[0]}=19996M",
        "CTA_GROUP_GPU_UUID": _GPUS[0],
        "CTA_GROUP_COUNT": "32",
        "CTA_GROUP_CAPACITY": "128",
        "CTA_GROUP_SM_COUNT": "32",
        "CTA_GROUP_MEMORY_MIB": "19996",
    },
    mounts=[api.Mount(container_path=_PIPE, host_path=_PIPE, read_only=True)],
)
_OPTIONS = api.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)


class _Floor(DevicePluginServicer):
    async def GetDevicePluginOptions(  # noqa: N802 - kubelet's name
        self, _request: api.Empty, _context: grpc.aio.ServicerContext[api.Empty, api.DevicePluginOptions]
    ) -> api.DevicePluginOptions:
        return _OPTIONS

    async def ListAndWatch(  # noqa: N802 - kubelet's name
        self, _request: api.Empty, _context: grpc.aio.ServicerContext[api.Empty, api.ListAndWatchResponse]
    ) -> AsyncIterator[api.ListAndWatchResponse]:
        yield _DEVICES
        await asyncio.Event().wait()

    async def GetPreferredAllocation(  # noqa: N802 - kubelet's name
        self,
        request: api.PreferredAllocationRequest,
        _context: grpc.aio.ServicerContext[api.PreferredAllocationRequest, api.PreferredAllocationResponse],
    ) -> api.PreferredAllocationResponse:
        (asked,) = request.container_requests
        ids = asked.available_deviceIDs[: asked.allocation_size]
        return api.PreferredAllocationResponse(
            container_responses=[api.ContainerPreferredAllocationResponse(deviceIDs=ids)]
        )

    async def Allocate(  # noqa: N802 - kubelet's name
        self,
        _request: api.AllocateRequest,
        _context: grpc.aio.ServicerContext[api.AllocateRequest, api.AllocateResponse],
    ) -> api.AllocateResponse:
        return api.AllocateResponse(container_responses=[_ANSWER])

    async def PreStartContainer(  # noqa: N802 - kubelet's name
        self,
        _request: api.PreStartContainerRequest,
        _context: grpc.aio.ServicerContext[api.PreStartContainerRequest, api.PreStartContainerResponse],
    ) -> api.PreStartContainerResponse:
        return api.PreStartContainerResponse()


async def main(folder: Path) -> None:
    """Serve and register once; run until killed."""
    server = grpc.aio.server()
    add_DevicePluginServicer_to_server(_Floor(), server)
    endpoint = f"floor-{os.getpid()}.sock"
    server.add_insecure_port(f"unix://{folder / endpoint}")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix://{folder / 'kubelet.sock'}") as channel:
        await RegistrationStub(channel).Register(
            api.RegisterRequest(
                version="v1beta1", endpoint=endpoint, resource_name="nvidia.com/cta-group", options=_OPTIONS
            )
        )
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
