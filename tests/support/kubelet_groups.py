"""What a kubelet of the tests says itself of the devices that it may give out."""

import grpc

from cluster_harness.node import Node
from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_plugin.kubelet_api.podresources_v1_pb2 import AllocatableResourcesRequest
from cta_group_plugin.kubelet_api.podresources_v1_pb2_grpc import PodResourcesListerStub


def groups_for_new_pods(node: Node, resource: str) -> int:
    """Return how many groups kubelet may hand out, held ones included; 0 while it is not up, or knows no plugin.

    The Node object tells of them later, and for a while still of those of a plugin that has gone.
    """
    path = node.kubelet_folder / "pod-resources" / "kubelet.sock"
    with grpc.insecure_channel(f"unix://{path}", options=[("grpc.default_authority", "localhost")]) as channel:
        stub = PodResourcesListerStub(channel)
        try:
            answer = stub.GetAllocatableResources(AllocatableResourcesRequest(), timeout=PATIENCE_SECONDS)
        except grpc.RpcError:
            return 0
    return sum(len(each.device_ids) for each in answer.devices if each.resource_name == resource)
