"""The plugin's answers as kubelet reads them."""

import grpc

from cta_group_core.errors import CtaGroupError, DoesNotFit, RequestRefused
from cta_group_core.ids import GpuUuid
from cta_group_plugin.answers import ContainerAnswer
from cta_group_plugin.device_list import device_list
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.state import NodeView


def code_of(refused: CtaGroupError) -> grpc.StatusCode:
    """Return the gRPC status of a refusal: no room now, a size that no GPU here takes, or no request at all.

    The operator tells them apart by it (:func:`cta_group_core.refusals.cause_of`).
    """
    if isinstance(refused, DoesNotFit):
        return grpc.StatusCode.RESOURCE_EXHAUSTED
    if isinstance(refused, RequestRefused):
        return grpc.StatusCode.FAILED_PRECONDITION
    return grpc.StatusCode.INVALID_ARGUMENT


def encoded_devices(view: NodeView, *, is_readmitting: bool, tells_numa: bool = False) -> api.ListAndWatchResponse:
    """Return every group with its health as kubelet reads it, in a stable order.

    With ``tells_numa`` each says on which NUMA node its GPU is, where that is known.
    """
    places = _places(view) if tells_numa else {}
    return api.ListAndWatchResponse(
        devices=[
            api.Device(ID=text, health=health, topology=places.get(view.offer.group_of(text).gpu) if places else None)
            for text, health in device_list(view, is_readmitting=is_readmitting).items()
        ]
    )


def _places(view: NodeView) -> dict[GpuUuid, api.TopologyInfo]:
    gpus = [*(gpu.facts for gpu in view.offer.served), *(gpu.facts for gpu in view.offer.withheld)]
    nodes = {facts.uuid: facts.numa_node for facts in gpus}
    return {uuid: api.TopologyInfo(nodes=[api.NUMANode(ID=node)]) for uuid, node in nodes.items() if node is not None}


def encoded(answer: ContainerAnswer) -> api.ContainerAllocateResponse:
    """Return an answer as kubelet reads it."""
    return api.ContainerAllocateResponse(
        envs=dict(answer.environment),
        mounts=[
            api.Mount(container_path=str(path), host_path=str(path), read_only=True) for path in answer.read_only_mounts
        ],
        cdi_devices=[api.CDIDevice(name=name) for name in answer.cdi_devices],
    )
