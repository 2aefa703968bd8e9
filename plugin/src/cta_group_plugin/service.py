"""The device plugin that kubelet calls: each method decodes, asks :mod:`.allocator`, encodes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import grpc
import grpc.aio

from cta_group_core.errors import CtaGroupError
from cta_group_plugin.allocator import Allocator
from cta_group_plugin.device_list import devices_after
from cta_group_plugin.encoding import code_of, encoded, encoded_devices
from cta_group_plugin.errors import CdiUnavailable, MemoryNotBack, MpsUnavailable
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.kubelet_api.deviceplugin_v1beta1_pb2_grpc import DevicePluginServicer
from cta_group_plugin.state import NodeState

_READMISSION_SECONDS: Final = 10.0
"""kubelet admits the pods of before within a second of its start, and later on a node with many."""

OPTIONS: Final = api.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)


class Stream:
    """Whether kubelet listens to the devices of one registration."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.ended = asyncio.Event()


class DevicePluginService(DevicePluginServicer):
    """One registration's face to kubelet."""

    def __init__(self, state: NodeState, allocator: Allocator, stream: Stream, *, tells_numa: bool = False) -> None:
        self._state = state
        self._tells_numa = tells_numa
        self._allocator = allocator
        self._stream = stream

    async def GetDevicePluginOptions(  # noqa: N802 - kubelet's name
        self, _request: api.Empty, _context: grpc.aio.ServicerContext[api.Empty, api.DevicePluginOptions]
    ) -> api.DevicePluginOptions:
        """Ask for both optional calls."""
        return OPTIONS

    async def ListAndWatch(  # noqa: N802 - kubelet's name
        self, _request: api.Empty, _context: grpc.aio.ServicerContext[api.Empty, api.ListAndWatchResponse]
    ) -> AsyncIterator[api.ListAndWatchResponse]:
        """Send all devices now and after each change. It just ends: a last "all unhealthy" would hit a successor."""
        self._stream.opened.set()
        sent: api.ListAndWatchResponse | None = None
        view = self._state.view
        clock = asyncio.get_running_loop().time
        readmitted_at = clock() + _READMISSION_SECONDS
        try:
            while True:
                left = readmitted_at - clock()
                devices = encoded_devices(view, is_readmitting=left > 0, tells_numa=self._tells_numa)
                if view.other_in_charge:
                    # kubelet takes the list of any stream as that of the resource. When this one counts again, it
                    # is told anew.
                    sent = None
                elif devices != sent:
                    yield devices
                    sent = devices
                view = await devices_after(self._state, view, left if left > 0 else None)
        finally:
            self._stream.ended.set()

    async def GetPreferredAllocation(  # noqa: N802 - kubelet's name
        self,
        request: api.PreferredAllocationRequest,
        context: grpc.aio.ServicerContext[api.PreferredAllocationRequest, api.PreferredAllocationResponse],
    ) -> api.PreferredAllocationResponse:
        """Choose the groups of a container: exactly as many as asked, or an error; never a short list."""
        try:
            chosen = [self._allocator.prefer(container) for container in request.container_requests]
        except CtaGroupError as refused:
            self._allocator.note_refusal("GetPreferredAllocation")
            await context.abort(code_of(refused), str(refused))
        return api.PreferredAllocationResponse(
            container_responses=[api.ContainerPreferredAllocationResponse(deviceIDs=ids) for ids in chosen]
        )

    async def Allocate(  # noqa: N802 - kubelet's name
        self,
        request: api.AllocateRequest,
        context: grpc.aio.ServicerContext[api.AllocateRequest, api.AllocateResponse],
    ) -> api.AllocateResponse:
        """Check the groups again and say what the container gets; kubelet replays this answer for the pod's life."""
        try:
            answers = [self._allocator.allocate(list(c.devices_ids)) for c in request.container_requests]
        except CtaGroupError as refused:
            self._allocator.note_refusal("Allocate")
            await context.abort(code_of(refused), str(refused))
        return api.AllocateResponse(container_responses=[encoded(answer) for answer in answers])

    async def PreStartContainer(  # noqa: N802 - kubelet's name
        self,
        request: api.PreStartContainerRequest,
        context: grpc.aio.ServicerContext[api.PreStartContainerRequest, api.PreStartContainerResponse],
    ) -> api.PreStartContainerResponse:
        """Let the container start once its limits are in force; otherwise kubelet waits and asks again."""
        try:
            await self._allocator.prepare(list(request.devices_ids))
        except (CtaGroupError, CdiUnavailable, MemoryNotBack, MpsUnavailable) as waiting:
            self._allocator.note_refusal("PreStartContainer")
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(waiting))
        return api.PreStartContainerResponse()
