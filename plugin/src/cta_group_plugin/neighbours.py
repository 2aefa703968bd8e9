"""Finds out how close the GPUs of the node are to each other: once for each set of GPUs, never while kubelet waits."""

import asyncio
from collections.abc import Iterable, Mapping
from itertools import combinations
from math import inf
from types import MappingProxyType
from typing import Final

from cta_group_core.ids import GpuUuid
from cta_group_core.links import NO_LINKS, Closeness, GpuLinks
from cta_group_plugin.driver_threads import Asker
from cta_group_plugin.errors import DriverError, DriverGone
from cta_group_plugin.gpu_source import GpuSource
from cta_group_plugin.logs import EventLog
from cta_group_plugin.ports import GpuFacts

_log: Final = EventLog(__name__)
_NOTHING: Final[Mapping[frozenset[GpuUuid], Closeness]] = MappingProxyType({})
_RETRY_SECONDS: Final = 300.0


class Neighbours:
    """Remembers the links between the GPUs that were asked for last."""

    def __init__(self, source: GpuSource, asker: Asker, *, retry_seconds: float = _RETRY_SECONDS) -> None:
        """``retry_seconds`` after it failed the driver is asked again."""
        self._source = source
        self._asker = asker
        self._retry_seconds = retry_seconds
        self._asked: frozenset[GpuUuid] = frozenset()
        self._ask_again_at = inf
        self._links = NO_LINKS

    async def links_between(self, gpus: Iterable[GpuFacts]) -> GpuLinks:
        """Return how close these GPUs are; what the driver does not tell is no preference. Raises DriverGone.

        GPUs that are fewer than before are not asked again: a link does not change, and one of the others may be lost.
        """
        gpus = list(gpus)
        uuids = frozenset(gpu.uuid for gpu in gpus)
        if not uuids <= self._asked or asyncio.get_running_loop().time() >= self._ask_again_at:
            self._asked, self._ask_again_at = uuids, inf
            self._links = links_of(gpus, await self._ask(sorted(uuids)))
        return self._links

    async def _ask(self, gpus: list[GpuUuid]) -> Mapping[frozenset[GpuUuid], Closeness]:
        try:
            return await self._asker.ask("links", lambda: self._source.links(gpus))
        except DriverGone:
            raise
        except DriverError as problem:
            _log.warning("gpu_links_unknown", problem=problem)
            self._ask_again_at = asyncio.get_running_loop().time() + self._retry_seconds
            return _NOTHING


def links_of(gpus: Iterable[GpuFacts], told: Mapping[frozenset[GpuUuid], Closeness]) -> GpuLinks:
    """Return what the driver told, and where it told nothing, which GPUs are on one NUMA node."""
    pairs = {
        frozenset((one.uuid, other.uuid)): Closeness.NUMA
        for one, other in combinations(gpus, 2)
        if one.numa_node is not None and one.numa_node == other.numa_node
    }
    return GpuLinks({**pairs, **told})
