"""The pods of the fake kubelet, and its pod-resources face."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import grpc.aio

from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.kubelet_api import podresources_v1_pb2 as pod_api
from cta_group_plugin.kubelet_api.podresources_v1_pb2_grpc import PodResourcesListerServicer
from cta_group_plugin.ports import PodName


@dataclass(frozen=True, slots=True)
class Ask:
    """A container of a pod that asks for groups."""

    name: str
    groups: int
    is_init: bool = False


@dataclass(frozen=True, slots=True)
class Admitted:
    """A container that got its groups."""

    ask: Ask
    ids: tuple[str, ...]
    answer: api.ContainerAllocateResponse


class FakeLister(PodResourcesListerServicer):
    """Lists the pods as kubelet does: without ordinary init containers, each device an entry of its own."""

    def __init__(
        self,
        resource_name: str,
        pods: Mapping[PodName, Sequence[Admitted]],
        others: Mapping[str, Sequence[str]],
    ) -> None:
        """``others`` are the devices of other plugins, by resource."""
        self._resource_name = resource_name
        self._pods = pods
        self._others = others

    async def List(  # noqa: N802 - kubelet's name
        self,
        _request: pod_api.ListPodResourcesRequest,
        _context: grpc.aio.ServicerContext[pod_api.ListPodResourcesRequest, pod_api.ListPodResourcesResponse],
    ) -> pod_api.ListPodResourcesResponse:
        """Return every pod."""
        pods = [
            pod_api.PodResources(
                name=pod.name,
                namespace=pod.namespace,
                containers=[self._container(container) for container in held if not container.ask.is_init],
            )
            for pod, held in self._pods.items()
        ]
        return pod_api.ListPodResourcesResponse(pod_resources=pods)

    async def GetAllocatableResources(  # noqa: N802 - kubelet's name
        self,
        _request: pod_api.AllocatableResourcesRequest,
        _context: grpc.aio.ServicerContext[pod_api.AllocatableResourcesRequest, pod_api.AllocatableResourcesResponse],
    ) -> pod_api.AllocatableResourcesResponse:
        """Return the devices of other plugins; our own are left out, since nobody asks for them."""
        devices = [
            pod_api.ContainerDevices(resource_name=resource, device_ids=[device])
            for resource, ids in self._others.items()
            for device in ids
        ]
        return pod_api.AllocatableResourcesResponse(devices=devices)

    def _container(self, container: Admitted) -> pod_api.ContainerResources:
        devices = [
            pod_api.ContainerDevices(resource_name=self._resource_name, device_ids=[device]) for device in container.ids
        ]
        return pod_api.ContainerResources(name=container.ask.name, devices=devices)
