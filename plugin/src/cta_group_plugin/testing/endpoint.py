"""One plugin as the fake kubelet sees it: a client, and the devices that its stream tells."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self

import grpc.aio

from cta_group_plugin.calls import cancellable
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.kubelet_api.deviceplugin_v1beta1_pb2_grpc import DevicePluginStub


class PluginEndpoint:
    """A registered plugin. Make it with :meth:`dial`."""

    def __init__(self, socket: Path, channel: grpc.aio.Channel, on_change: Callable[[], Awaitable[None]]) -> None:
        self.socket = socket
        self.stub = DevicePluginStub(channel)
        self.devices: dict[str, str] = {}
        self.numa_nodes: dict[str, list[int]] = {}
        """Of each device that says on which NUMA nodes it is."""
        self.lists_received = 0
        self._channel = channel
        self._on_change = on_change
        self._listening: asyncio.Task[None] | None = None

    @classmethod
    async def dial(cls, socket: Path, on_change: Callable[[], Awaitable[None]]) -> Self:
        """Ask the plugin for its options and begin to listen; raises AioRpcError when it does not answer."""
        options = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
        channel = grpc.aio.insecure_channel(f"unix://{socket}", options=options)
        endpoint = cls(socket, channel, on_change)
        await cancellable(endpoint.stub.GetDevicePluginOptions(api.Empty(), timeout=10))
        endpoint._listening = asyncio.create_task(endpoint._listen())
        return endpoint

    async def stop_listening(self) -> None:
        """End the stream of devices but stay connected, as a kubelet does that mixes two plugins up."""
        if self._listening:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def close(self) -> None:
        """End the stream and the connection."""
        await self.stop_listening()
        await self._channel.close()

    async def _listen(self) -> None:
        try:
            async for answer in self.stub.ListAndWatch(api.Empty()):
                self.devices = {device.ID: device.health for device in answer.devices}
                placed = (device for device in answer.devices if device.topology.nodes)
                self.numa_nodes = {device.ID: [node.ID for node in device.topology.nodes] for device in placed}
                self.lists_received += 1
                await self._on_change()
        except grpc.aio.AioRpcError:
            pass  # the plugin is gone
        self.devices = dict.fromkeys(self.devices, "Unhealthy")
        await self._on_change()
