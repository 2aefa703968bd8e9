"""kubelet's rules of giving out devices, without sockets, threads and time: for tests that try many sequences.

Modelled on what was read and measured of kubelet 1.37: containers are admitted one after another, init containers
first; a recorded container is never asked about again; devices of ordinary init containers are reused, in random order,
by the containers after them; a preference is asked for with every free device, and topped up at random when short;
a device is free again once its pod has ended, and only healthy devices are given out. After a restart kubelet knows
its pods and no plugin, and admits every pod again: one with a container that does not run needs its devices healthy.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.ports import PodName

HEALTHY = "Healthy"


class Refused(Exception):
    """The plugin, or kubelet itself, refused a call; the text is what the pod would show."""


class Role(Enum):
    """What a container is in its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    """An init container that goes on beside the others; its devices are its own."""
    APP = "app"


@dataclass(frozen=True, slots=True)
class Asked:
    """A container that asks for groups."""

    name: str
    groups: int
    role: Role = Role.APP


@dataclass(slots=True)
class Container:
    """A container with its devices, which it keeps for the life of its pod."""

    asked: Asked
    ids: frozenset[str]
    answer: api.ContainerAllocateResponse
    runs: bool = False
    has_ended: bool = False
    """An init container that has done its work; it does not start again."""


@dataclass(slots=True)
class Pod:
    """A pod that was admitted."""

    name: PodName
    containers: list[Container] = field(default_factory=list)

    @property
    def ids(self) -> frozenset[str]:
        """Every device that is not free because of this pod."""
        return frozenset().union(*(container.ids for container in self.containers))

    def next_to_start(self) -> list[Container]:
        """Return the containers whose turn it is: the first init container that is not done, or all the others."""
        for container in self.containers:
            if container.asked.role is Role.INIT and not container.has_ended:
                return [] if container.runs else [container]
            if container.asked.role is Role.SIDECAR and not container.runs:
                return [container]
        return [container for container in self.containers if not container.runs and not container.has_ended]


class PluginCalls(Protocol):
    """The plugin that kubelet knows, as far as it is asked about containers. Each raises Refused."""

    async def prefer(self, request: api.ContainerPreferredAllocationRequest) -> list[str]:
        """Call GetPreferredAllocation."""

    async def allocate(self, ids: Sequence[str]) -> api.ContainerAllocateResponse:
        """Call Allocate."""

    async def start(self, ids: Sequence[str]) -> None:
        """Call PreStartContainer."""


class KubeletModel:
    """The device manager of one kubelet with one resource."""

    def __init__(self, chance: random.Random) -> None:
        """``chance`` decides what kubelet leaves to the order of Go's maps."""
        self.pods: dict[PodName, Pod] = {}
        """Active pods, in the order of their admission."""
        self.devices: dict[str, str] = {}
        """Health of every device that was listed last; empty without a plugin."""
        self.plugin: PluginCalls | None = None
        self.checkpoint: list[tuple[str, str, frozenset[str]]] = []
        """Pod, container and devices, as they were written when a container got its devices last."""
        self._chance = chance

    def forget_plugin(self) -> None:
        """Restart: the pods are remembered, the plugin is not."""
        self.plugin = None
        self.devices = {}

    def free(self) -> list[str]:
        """Return the healthy devices that no pod has, in random order."""
        held = frozenset().union(*(pod.ids for pod in self.pods.values()))
        return self._shuffled({each for each, health in self.devices.items() if health == HEALTHY} - held)

    async def admit(self, name: PodName, asks: Sequence[Asked], *, skips_preference: bool = False) -> Pod:
        """Give each container its devices, or raise Refused and remember nothing of the pod.

        ``skips_preference``: kubelet takes any free devices, as it does when as many are aligned as were asked for.
        """
        pod = Pod(name)
        self.pods[name] = pod
        try:
            for asked in asks:
                pod.containers.append(await self._allocated(pod, asked, skips_preference=skips_preference))
                self._write_checkpoint()
        except BaseException:
            del self.pods[name]
            raise
        return pod

    async def start(self, container: Container) -> None:
        """Start a container, or raise Refused: then it waits and is started again later."""
        await self._known_plugin().start(sorted(container.ids))
        container.runs = True

    def refused_again(self) -> list[Pod]:
        """Admit every pod again after a restart; return those that fail for good, which are no longer active."""
        failed = [pod for pod in self.pods.values() if self._is_refused_again(pod)]
        for pod in failed:
            del self.pods[pod.name]
        return failed

    def _write_checkpoint(self) -> None:
        self.checkpoint = [
            (pod.name.name, container.asked.name, container.ids)
            for pod in self.pods.values()
            for container in pod.containers
        ]

    def _is_refused_again(self, pod: Pod) -> bool:
        waiting = [container for container in pod.containers if not container.runs]
        return any(self.devices.get(each) != HEALTHY for container in waiting for each in container.ids)

    async def _allocated(self, pod: Pod, asked: Asked, *, skips_preference: bool) -> Container:
        reusable = self._shuffled(_reusable(pod))
        ids = reusable[: asked.groups]
        if len(ids) < asked.groups:
            ids = self._topped_up(ids, asked.groups) if skips_preference else await self._preferred(ids, asked.groups)
        answer = await self._known_plugin().allocate(ids)
        return Container(asked, frozenset(ids), answer)

    async def _preferred(self, kept: list[str], groups: int) -> list[str]:
        free = self._enough_free(kept, groups)
        preferred = await self._known_plugin().prefer(
            api.ContainerPreferredAllocationRequest(
                available_deviceIDs=[*free, *kept], must_include_deviceIDs=kept, allocation_size=groups
            )
        )
        offered = [each for each in preferred if each in {*free, *kept}]
        return self._topped_up(offered, groups)

    def _topped_up(self, ids: list[str], groups: int) -> list[str]:
        others = [each for each in self._enough_free(ids, groups) if each not in ids]
        return [*ids, *others][:groups]

    def _enough_free(self, kept: Sequence[str], groups: int) -> list[str]:
        free = self.free()
        if len({*free, *kept}) < groups:
            raise Refused(f"requested number of devices unavailable: {groups}, available {len(free)}")
        return free

    def _known_plugin(self) -> PluginCalls:
        if self.plugin is None:
            raise Refused("no healthy devices present; cannot allocate unhealthy devices")
        return self.plugin

    def _shuffled(self, ids: set[str] | frozenset[str]) -> list[str]:
        ordered = sorted(ids)
        self._chance.shuffle(ordered)
        return ordered


def _reusable(pod: Pod) -> frozenset[str]:
    """Return what the ordinary init containers leave to the next container, less what others took of it since."""
    left: frozenset[str] = frozenset()
    for container in pod.containers:
        left = left | container.ids if container.asked.role is Role.INIT else left - container.ids
    return left


def listed_containers(pods: Iterator[Pod]) -> Iterator[tuple[Pod, Container]]:
    """Yield what pod-resources tells of: every container but ordinary init containers."""
    for pod in pods:
        yield from ((pod, container) for container in pod.containers if container.asked.role is not Role.INIT)
