"""Notices when another device plugin serves a GPU of ours too, so that no GPU is handed out by two of them.

kubelet tells, for every plugin, the devices that can be allocated. How plugins name a GPU: by its UUID (NVIDIA's own,
with ``::n`` behind it for replicas; HAMi with more behind it), by its index (NVIDIA's with that setting), or by its
device file (``nvidia0``). MIG devices name no GPU, and a GPU in MIG mode is not ours anyway.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NoReturn

from cta_group_core.ids import GpuUuid
from cta_group_plugin.errors import KubeletUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.ports import GpuFacts, PodResources
from cta_group_plugin.state import NodeState

_log = EventLog(__name__)

_PERIOD_SECONDS: Final = 10.0
_STICKY_SECONDS: Final = 300.0
"""kubelet keeps a resource for this long after its plugin went; one that restarts is not gone."""
_UUID: Final = re.compile(r"GPU-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|GPU-[0-9A-Za-z-]+")
_NVIDIA: Final = "nvidia.com/gpu"
_INDEX: Final = re.compile(r"([0-9]+)(?:::[0-9]+)?")
_DEVICE_FILE: Final = re.compile(r"nvidia([0-9]+)(?:/.*)?")


def claims_of(devices: Mapping[str, Collection[str]], gpus: Iterable[GpuFacts]) -> Mapping[GpuUuid, frozenset[str]]:
    """Return the resources that name each of ``gpus``; ``devices`` are the ids of every other resource."""
    named: dict[GpuUuid, set[str]] = {}
    gpus = list(gpus)
    for resource, ids in devices.items():
        for gpu in _named_by(resource, ids, gpus):
            named.setdefault(gpu, set()).add(resource)
    return {gpu: frozenset(resources) for gpu, resources in named.items()}


def _named_by(resource: str, ids: Collection[str], gpus: Iterable[GpuFacts]) -> set[GpuUuid]:
    texts = {text for device in ids for text in _UUID.findall(device)}
    found = {gpu.uuid for gpu in gpus if gpu.uuid in texts}
    if not resource.startswith(_NVIDIA):
        return found
    indexes = {int(match[1]) for device in ids if (match := _INDEX.fullmatch(device))}
    minors = {int(match[1]) for device in ids if (match := _DEVICE_FILE.fullmatch(device))}
    return found | {gpu.uuid for gpu in gpus if gpu.index in indexes or gpu.minor in minors}


class ClaimKeeper:
    """Asks kubelet every few seconds."""

    def __init__(
        self,
        state: NodeState,
        pod_resources: PodResources,
        on_change: Callable[[], None],
        *,
        period_seconds: float = _PERIOD_SECONDS,
        sticky_seconds: float = _STICKY_SECONDS,
    ) -> None:
        """Call ``on_change`` when a resource came or went, so that whoever decides what is offered looks again."""
        self._state = state
        self._pod_resources = pod_resources
        self._on_change = on_change
        self._period_seconds = period_seconds
        self._sticky_seconds = sticky_seconds
        self._seen: dict[str, tuple[frozenset[str], float]] = {}
        """Devices of each resource when it had any, and when that was."""

    async def run(self) -> NoReturn:
        """Ask for ever. A kubelet that does not answer has no news."""
        while True:
            await self._ask()
            await asyncio.sleep(self._period_seconds)

    async def _ask(self) -> None:
        now = self._state.now()
        try:
            devices = await self._pod_resources.other_devices()
        except KubeletUnavailable as problem:
            _log.debug("other_devices_unknown", problem=problem)
            devices = {}
        self._seen.update({resource: (ids, now) for resource, ids in devices.items() if ids})
        self._seen = {
            resource: (ids, at) for resource, (ids, at) in self._seen.items() if now - at < self._sticky_seconds
        }
        if self._state.learn_other_devices({resource: ids for resource, (ids, _) in self._seen.items()}):
            self._on_change()
