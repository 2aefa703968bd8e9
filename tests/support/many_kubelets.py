"""The kubelets and plugins of several nodes, as far as placement depends on them.

A pod that is bound to a node is admitted there some time later, by the rules of the device plugin: one GPU with room,
the one with the fewest groups left, or whole free GPUs for more than one. Where nothing fits the pod fails as a kubelet
fails it, for good. What is held appears in the CTANode after another while. Both times differ from pod to pod.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cta_group_core.names import DEFAULT_RESOURCE_NAME, GATE_PLACEMENT
from cta_group_core.nodes import Allocation, NodeStatus
from cta_group_operator.errors import ApiUnavailable
from cta_group_operator.ports import KubeApi
from gpu_cluster import CAPACITY, OURS, h100, held

Json = Mapping[str, Any]
_LOOK_SECONDS = 0.1


def chosen_gpus(free: Sequence[int], groups: int) -> list[int]:
    """Return the GPUs that a plugin gives; none when it refuses."""
    if groups <= CAPACITY:
        able = [gpu for gpu, room in enumerate(free) if room >= groups]
        return [min(able, key=lambda gpu: (free[gpu], gpu))] if able else []
    whole = [gpu for gpu, room in enumerate(free) if room == CAPACITY]
    count = groups // CAPACITY
    return whole[:count] if len(whole) >= count else []


@dataclass
class ModelledNode:
    """One node of H100s. ``tenants``: what is held on each GPU."""

    name: str
    tenants: list[list[Allocation]]
    published: int = 0
    """How many tenants the CTANode tells."""
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def free(self) -> list[int]:
        """Groups that nobody holds, by GPU."""
        return [CAPACITY - sum(one.groups for one in tenants) for tenants in self.tenants]

    def admit(self, namespace: str, pod: str, groups: int) -> bool:
        """Give groups to a pod; False when there is no room."""
        gpus = chosen_gpus(self.free, groups)
        for gpu in gpus:
            self.tenants[gpu].append(held(min(groups, CAPACITY), pod, namespace))
        return bool(gpus)


class ManyKubelets:
    """Looks at the pods of one namespace again and again, and treats those that are bound."""

    def __init__(self, api: KubeApi, namespace: str, nodes: Mapping[str, int], chance: random.Random) -> None:
        """``nodes``: how many GPUs each has."""
        self._api = api
        self._namespace = namespace
        self._chance = chance
        self._treated: set[str] = set()
        self.nodes = {name: ModelledNode(name, [[] for _ in range(gpus)]) for name, gpus in nodes.items()}
        self.pods: list[Json] = []
        """As they were seen last."""
        self.refused: list[str] = []
        """Pods that failed at their admission."""

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                found = await _answered(lambda: self._api.get(f"/api/v1/namespaces/{self._namespace}/pods"))
                for pod in found["items"]:
                    uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
                    if node in self.nodes and uid not in self._treated:
                        self._treated.add(uid)
                        group.create_task(self._treat(pod, self.nodes[node]))
                self.pods = found["items"]
                await asyncio.sleep(_LOOK_SECONDS)

    @property
    def running(self) -> list[Json]:
        """The pods that run."""
        return [pod for pod in self.pods if pod["status"].get("phase") == "Running"]

    @property
    def gated(self) -> list[Json]:
        """The pods that wait behind the gate of placement."""
        return [pod for pod in self.pods if {"name": GATE_PLACEMENT} in pod["spec"].get("schedulingGates", ())]

    def is_settled(self, count: int) -> bool:
        """Tell whether ``count`` pods are there, none is on its way, and none that waits has room anywhere."""
        on_the_way = len(self.pods) - len(self.running) - len(self.gated) - len(self.refused)
        told = all(node.published == sum(map(len, node.tenants)) for node in self.nodes.values())
        return len(self.pods) == count and not on_the_way and told and not any(map(self.has_room, self.gated))

    def has_room(self, pod: Json) -> bool:
        """Tell whether some node could admit a pod now."""
        return any(chosen_gpus(node.free, groups_of(pod)) for node in self.nodes.values())

    async def _treat(self, pod: Json, node: ModelledNode) -> None:
        await asyncio.sleep(self._chance.uniform(0, 1))
        name = pod["metadata"]["name"]
        if not node.admit(self._namespace, name, groups_of(pod)):
            self.refused.append(name)
            await self._set_status(name, {"phase": "Failed", "reason": "UnexpectedAdmissionError"})
            return
        await self._set_status(name, {"phase": "Running"})
        await asyncio.sleep(self._chance.uniform(0, 1))
        await self._publish(node)

    async def _set_status(self, name: str, status: Json) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/pods/{name}/status"
        await _answered(lambda: self._api.merge_patch(path, {"status": dict(status)}))

    async def _publish(self, node: ModelledNode) -> None:
        async with node.writing:
            gpus = tuple(h100(node.name, index, tuple(tenants)) for index, tenants in enumerate(node.tenants))
            count = sum(map(len, node.tenants))
            status = NodeStatus(resource_name=DEFAULT_RESOURCE_NAME, simulated=True, gpus=gpus).with_totals()
            path = f"{OURS}/ctanodes/{node.name}/status"
            await _answered(lambda: self._api.merge_patch(path, {"status": status.as_api()}))
            node.published = count


async def _answered(call: Callable[[], Awaitable[Json]]) -> Json:
    """Call until there is an answer: an API server of a busy machine may be too long about one."""
    while True:
        try:
            return await call()
        except ApiUnavailable:
            await asyncio.sleep(_LOOK_SECONDS)


def groups_of(pod: Json) -> int:
    """Return what a pod asks for."""
    return int(pod["spec"]["containers"][0]["resources"]["limits"][DEFAULT_RESOURCE_NAME])
