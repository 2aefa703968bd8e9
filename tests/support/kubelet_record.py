"""Which device ids a node's kubelet has recorded for which pod, from its own checkpoint."""

import json
from collections.abc import Collection

from cluster_harness.node import Node


def recorded_ids(node: Node, resource: str) -> dict[str, frozenset[str]]:
    """Return the ids of a resource that kubelet has recorded for each pod, by its UID; none before its first record."""
    checkpoint = node.kubelet_folder / "device-plugins" / "kubelet_internal_checkpoint"
    held: dict[str, frozenset[str]] = {}
    if not checkpoint.exists():  # kubelet never takes it away
        return held
    for entry in json.loads(checkpoint.read_text())["Data"]["PodDeviceEntries"] or ():
        if entry["ResourceName"] == resource:
            ids = frozenset(each for several in entry["DeviceIDs"].values() for each in several)
            held[entry["PodUID"]] = held.get(entry["PodUID"], frozenset()) | ids
    return held


def are_disjoint(held: Collection[frozenset[str]]) -> bool:
    """Tell whether no id is held twice."""
    return len(frozenset().union(*held)) == sum(map(len, held))
