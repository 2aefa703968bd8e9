"""A fake kubelet: its three gRPC faces over real sockets and its rules of allocation, without pods or containers.

Modelled on what was read and measured of kubelet 1.37: it calls the plugin back inside Register, asks for a preference
with every free device, fills a short answer up at random, lets app containers reuse the devices of init containers, and
lists no init containers. Not modelled: topology, checkpoints, several resources, retries.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import grpc.aio

from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_plugin.calls import cancellable
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.kubelet_api.deviceplugin_v1beta1_pb2_grpc import (
    RegistrationServicer,
    add_RegistrationServicer_to_server,
)
from cta_group_plugin.kubelet_api.podresources_v1_pb2_grpc import add_PodResourcesListerServicer_to_server
from cta_group_plugin.ports import PodName
from cta_group_plugin.testing.endpoint import PluginEndpoint
from cta_group_plugin.testing.pods import Admitted, Ask, FakeLister

if TYPE_CHECKING:
    from cta_group_plugin.kubelet_api.deviceplugin_v1beta1_pb2_grpc import DevicePluginAsyncStub


class AdmissionRefused(Exception):
    """The pod is rejected for good, with the text that the pod would show."""


class FakeKubelet:
    """One kubelet with one resource. Use it as an asynchronous context manager; :meth:`restart` at will."""

    def __init__(
        self,
        folder: Path,
        *,
        pod_resources_socket: Path | None = None,
        resource_name: str = DEFAULT_RESOURCE_NAME,
        seed: int = 0,
    ) -> None:
        """``folder`` is the folder of device plugins; ``pod_resources_socket`` is served when given."""
        self.folder = folder
        self.registered: list[api.RegisterRequest] = []
        """Every registration since the object was made, over all restarts."""
        self.endpoint: PluginEndpoint | None = None
        """The plugin that is known now."""
        self.others: dict[str, list[str]] = {}
        """Devices that other plugins have registered, by resource."""
        self._pod_resources_socket = pod_resources_socket
        self._resource_name = resource_name
        self._pods: dict[PodName, list[Admitted]] = {}
        self._random = random.Random(seed)  # noqa: S311 - what kubelet leaves to chance
        self._changed = asyncio.Condition()
        self._servers: list[grpc.aio.Server] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Wipe the sockets of all plugins, as kubelet does, and serve anew; the pods are remembered."""
        for path in self.folder.iterdir():
            if path.is_socket():
                path.unlink()
        server = grpc.aio.server()
        add_RegistrationServicer_to_server(_Registration(self), server)
        await self._serve(server, self.folder / "kubelet.sock")
        if self._pod_resources_socket:
            lister = grpc.aio.server()
            pods = FakeLister(self._resource_name, self._pods, self.others)
            add_PodResourcesListerServicer_to_server(pods, lister)
            await self._serve(lister, self._pod_resources_socket)

    async def stop(self) -> None:
        """Drop the plugin and end all servers."""
        if self.endpoint:
            await self.endpoint.close()
            self.endpoint = None
        for server in self._servers:
            await cancellable(server.stop(None))
        self._servers.clear()

    async def restart(self) -> None:
        """Stop, and start with empty hands but for the memory of its pods."""
        await self.stop()
        await self.start()

    async def until(self, condition: Callable[[Self], bool], *, deadline_seconds: float = 60.0) -> None:
        """Wait until something registered or sent makes ``condition`` true; raises TimeoutError."""
        async with asyncio.timeout(deadline_seconds), self._changed:
            await self._changed.wait_for(lambda: condition(self))

    @property
    def devices(self) -> dict[str, str]:
        """Health of every device that the plugin listed last; empty without a plugin."""
        return self.endpoint.devices if self.endpoint else {}

    @property
    def plugin(self) -> "DevicePluginAsyncStub":
        """Client of the plugin that is known now."""
        if not self.endpoint:
            raise LookupError("no plugin is registered")
        return self.endpoint.stub

    def free(self) -> list[str]:
        """Return healthy devices that no pod holds, in the random order in which kubelet sends them."""
        held = {device for admitted in self._pods.values() for container in admitted for device in container.ids}
        free = sorted(name for name, health in self.devices.items() if health == "Healthy" and name not in held)
        self._random.shuffle(free)
        return free

    async def admit(self, pod: PodName, asks: Sequence[Ask]) -> list[Admitted]:
        """Give each container its groups, in order, or raise AdmissionRefused and hold nothing for the pod."""
        held = self._pods.setdefault(pod, [])
        try:
            for ask in asks:
                held.append(await self._admit_container(held, ask))
        except grpc.aio.AioRpcError as error:
            del self._pods[pod]
            raise AdmissionRefused(f"{error.code().name}: {error.details()}") from error
        return list(held)

    def hold(self, pod: PodName, container: str, ids: Sequence[str]) -> None:
        """Let a pod hold groups that were given to it before anybody looked."""
        self._pods[pod] = [Admitted(Ask(container, len(ids)), tuple(ids), api.ContainerAllocateResponse())]

    async def start_container(self, container: Admitted) -> None:
        """Call PreStartContainer; raises AioRpcError when the container must wait."""
        await self.plugin.PreStartContainer(api.PreStartContainerRequest(devices_ids=container.ids))

    def delete(self, pod: PodName) -> None:
        """End a pod; its devices are free."""
        del self._pods[pod]

    async def know(self, request: api.RegisterRequest) -> None:
        """Take a registration: dial back, ask for the options, and listen to the devices."""
        endpoint = await PluginEndpoint.dial(self.folder / request.endpoint, self._note_change)
        before, self.endpoint = self.endpoint, endpoint
        self.registered.append(request)
        if before:
            await before.close()
        await self._note_change()

    async def _serve(self, server: grpc.aio.Server, path: Path) -> None:
        _remove(path)
        server.add_insecure_port(f"unix://{path}")
        await server.start()
        self._servers.append(server)

    async def _note_change(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _admit_container(self, held: Sequence[Admitted], ask: Ask) -> Admitted:
        reusable = {device for container in held if container.ask.is_init for device in container.ids}
        taken = {device for container in held if not container.ask.is_init for device in container.ids}
        reused = sorted(reusable - taken)
        self._random.shuffle(reused)
        ids = reused[: ask.groups]
        if len(ids) < ask.groups:
            ids = await self._prefer(ids, ask.groups)
        answer = await self.plugin.Allocate(
            api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=ids)])
        )
        return Admitted(ask, tuple(ids), answer.container_responses[0])

    async def _prefer(self, must_include: list[str], groups: int) -> list[str]:
        free = self.free()
        if len(free) + len(must_include) < groups:
            raise AdmissionRefused(f"requested number of devices unavailable: {groups}, available {len(free)}")
        request = api.ContainerPreferredAllocationRequest(
            available_deviceIDs=[*free, *must_include], must_include_deviceIDs=must_include, allocation_size=groups
        )
        answer = await self.plugin.GetPreferredAllocation(api.PreferredAllocationRequest(container_requests=[request]))
        offered = {*free, *must_include}
        preferred = [name for name in answer.container_responses[0].deviceIDs if name in offered]
        others = [name for name in free if name not in preferred]
        return [*preferred, *others][:groups]


def _remove(socket: Path) -> None:
    with suppress(FileNotFoundError):
        socket.unlink()


class _Registration(RegistrationServicer):
    def __init__(self, kubelet: FakeKubelet) -> None:
        self._kubelet = kubelet

    async def Register(  # noqa: N802 - kubelet's name
        self, request: api.RegisterRequest, context: grpc.aio.ServicerContext[api.RegisterRequest, api.Empty]
    ) -> api.Empty:
        try:
            await self._kubelet.know(request)
        except grpc.aio.AioRpcError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, f"failed to dial device plugin: {error.details()}")
        return api.Empty()
