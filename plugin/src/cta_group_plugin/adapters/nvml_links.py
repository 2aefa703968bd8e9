"""Reads from NVML how close the GPUs are to each other.

NVLink is told by the driver's own word on what a copy between two GPUs uses, which is the same for links between two
GPUs and for those over NVSwitch (there the far end of a link is a switch, and never the other GPU).
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, Final

import pynvml

from cta_group_core.ids import GpuUuid
from cta_group_core.links import Closeness
from cta_group_plugin.adapters.nvml_errors import told_if_possible

_BY_ANCESTOR: Final = {
    pynvml.NVML_TOPOLOGY_INTERNAL: Closeness.SWITCH,  # two GPUs of one board
    pynvml.NVML_TOPOLOGY_SINGLE: Closeness.SWITCH,
    pynvml.NVML_TOPOLOGY_MULTIPLE: Closeness.SWITCH,
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: Closeness.NUMA,
    pynvml.NVML_TOPOLOGY_NODE: Closeness.NUMA,
}


def read_links(handles: Mapping[GpuUuid, Any]) -> dict[frozenset[GpuUuid], Closeness]:
    """Return how close each two of these GPUs are; a pair of which the driver tells nothing is left out.

    Raises NVMLError for a GPU or a library that is gone.
    """
    links: dict[frozenset[GpuUuid], Closeness] = {}
    for (one, first), (other, second) in combinations(handles.items(), 2):
        if closeness := _between(first, second):
            links[frozenset((one, other))] = closeness
    return links


def _between(one: Any, other: Any) -> Closeness | None:
    nvlink = told_if_possible(lambda: pynvml.nvmlDeviceGetP2PStatus(one, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK))
    if nvlink == pynvml.NVML_P2P_STATUS_OK:
        return Closeness.NVLINK
    ancestor = told_if_possible(lambda: pynvml.nvmlDeviceGetTopologyCommonAncestor(one, other))
    return None if ancestor is None else _BY_ANCESTOR.get(ancestor)
