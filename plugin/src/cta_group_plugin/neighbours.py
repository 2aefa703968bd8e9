"""Finds out how close the GPUs of the node are to each other: once for each set of GPUs, never while kubelet waits."""

from collections.abc import Iterable, Mapping
from itertools import combinations
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


class Neighbours:
    """Remembers the links between the GPUs that were asked for last."""

    def __init__(self, source: GpuSource, asker: Asker) -> None:
        self._source = source
        self._asker = asker
        self._asked: frozenset[GpuUuid] = frozenset()
        self._links = NO_LINKS

    async def links_between(self, gpus: Iterable[GpuFacts]) -> GpuLinks:
        """Return how close these GPUs are; what the driver does not tell is no preference. Raises DriverGone.

        GPUs that are fewer than before are not asked again: a link does not change, and one of the others may be lost.
        """
        gpus = list(gpus)
        uuids = frozenset(gpu.uuid for gpu in gpus)
        if not uuids <= self._asked:
            self._asked = uuids
            self._links = links_of(gpus, await self._ask(sorted(uuids)))
        return self._links

    async def _ask(self, gpus: list[GpuUuid]) -> Mapping[frozenset[GpuUuid], Closeness]:
        try:
            return await self._asker.ask("links", lambda: self._source.links(gpus))
        except DriverGone:
            raise
        except DriverError as problem:
            _log.warning("gpu_links_unknown", problem=problem)
            return _NOTHING


def links_of(gpus: Iterable[GpuFacts], told: Mapping[frozenset[GpuUuid], Closeness]) -> GpuLinks:
    """Return what the driver told, and where it told nothing, which GPUs are on one NUMA node."""
    pairs = {
        frozenset((one.uuid, other.uuid)): Closeness.NUMA
        for one, other in combinations(gpus, 2)
        if one.numa_node is not None and one.numa_node == other.numa_node
    }
    return GpuLinks({**pairs, **told})
