"""kubelet's pod-resources socket: which container holds which groups."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import grpc.aio

from cta_group_core.errors import InvalidText
from cta_group_core.ids import UUID_TEXTS, GroupId
from cta_group_plugin.calls import cancellable
from cta_group_plugin.errors import KubeletUnavailable
from cta_group_plugin.kubelet_api import podresources_v1_pb2 as api
from cta_group_plugin.kubelet_api.podresources_v1_pb2_grpc import PodResourcesListerStub
from cta_group_plugin.ports import Account, Holding, PodName
from cta_group_plugin.sockets import with_hint

_TIMEOUT_SECONDS: Final = 5.0
_LARGEST_MESSAGE_BYTES: Final = 16 << 20
"""kubelet's clients take this much; a node full of pods with 46-byte ids stays below 1 MiB."""


class KubeletPodResources:
    """Implements :class:`cta_group_plugin.ports.PodResources` over the socket."""

    def __init__(
        self, socket: Path, resource_name: str, meaning_of: Callable[[str], GroupId] = UUID_TEXTS.parse
    ) -> None:
        """``meaning_of`` returns the group of an id, or raises InvalidText."""
        self._socket = socket
        self._resource_name = resource_name
        self._meaning_of = meaning_of
        self._channel = grpc.aio.insecure_channel(
            f"unix://{socket}",
            options=[
                ("grpc.default_authority", "localhost"),
                ("grpc.max_receive_message_length", _LARGEST_MESSAGE_BYTES),
                ("grpc.max_reconnect_backoff_ms", 2000),
            ],
        )
        self._stub = PodResourcesListerStub(self._channel)

    async def account(self) -> Account:
        """Ask kubelet. Raises KubeletUnavailable naming the socket."""
        try:
            answer = await cancellable(self._stub.List(api.ListPodResourcesRequest(), timeout=_TIMEOUT_SECONDS))
        except grpc.aio.AioRpcError as error:
            raise self._unavailable("List", error) from error
        return account_of(answer, self._resource_name, self._meaning_of)

    async def other_devices(self) -> Mapping[str, frozenset[str]]:
        """Ask kubelet for the devices of other plugins. Raises KubeletUnavailable naming the socket.

        Before Kubernetes 1.23, and with the question switched off, kubelet does not tell.
        """
        try:
            answer = await cancellable(
                self._stub.GetAllocatableResources(api.AllocatableResourcesRequest(), timeout=_TIMEOUT_SECONDS)
            )
        except grpc.aio.AioRpcError as error:
            raise self._unavailable("GetAllocatableResources", error) from error
        return devices_of(answer, self._resource_name)

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close()

    def _unavailable(self, call: str, error: grpc.aio.AioRpcError) -> KubeletUnavailable:
        told = f"{error.code().name}: {error.details()}"
        return KubeletUnavailable(with_hint(f"{self._socket}: {call} failed: {told}"))


def devices_of(answer: api.AllocatableResourcesResponse, resource_name: str) -> Mapping[str, frozenset[str]]:
    """Return the ids of every other resource; kubelet may list each device as an entry of its own."""
    ids: dict[str, set[str]] = {}
    for devices in answer.devices:
        if devices.resource_name != resource_name:
            ids.setdefault(devices.resource_name, set()).update(devices.device_ids)
    return {resource: frozenset(members) for resource, members in ids.items()}


def account_of(
    answer: api.ListPodResourcesResponse, resource_name: str, meaning_of: Callable[[str], GroupId] = UUID_TEXTS.parse
) -> Account:
    """Return kubelet's answer in the project's words; what is of other resources is left out."""
    holdings: list[Holding] = []
    texts: set[str] = set()
    for pod in answer.pod_resources:
        name = PodName(pod.namespace, pod.name)
        for container in pod.containers:
            held = _texts(container, resource_name)
            texts |= held
            if ids := frozenset(_understood(held, meaning_of)):
                holdings.append(Holding(name, container.name, ids))
    pods = frozenset(PodName(pod.namespace, pod.name) for pod in answer.pod_resources)
    return Account(tuple(holdings), pods, frozenset(texts))


def _texts(container: api.ContainerResources, resource_name: str) -> set[str]:
    return {
        text for devices in container.devices if devices.resource_name == resource_name for text in devices.device_ids
    }


def _understood(texts: Iterable[str], meaning_of: Callable[[str], GroupId]) -> Iterator[GroupId]:
    for text in texts:
        try:
            yield meaning_of(text)
        except InvalidText:
            continue  # another plugin gave it out under our name before
