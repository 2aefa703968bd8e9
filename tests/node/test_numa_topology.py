"""Groups that say on which NUMA node they are, as a real kubelet takes them."""

import json

from cta_group_plugin.adapters.checkpoint import CHECKPOINT
from plain_node import PLUGIN, PlainNode
from plain_pods import RESOURCE

_FOR_EVER = "trap exit TERM; while :; do sleep 1; done"


def test_groups_with_numa_nodes_are_chosen_and_remembered_as_without(plain: PlainNode) -> None:
    """Ids are kept by NUMA node then: a plugin that restarts knows who holds what, and gives out others."""
    plain.start_supervisor()
    plain.start_plugin("--topology=numa")
    plain.start_pod("first", 96, _FOR_EVER)
    plain.start_pod("second", 96, _FOR_EVER)
    plain.wait_running("first", "second")
    assert numa_nodes(plain) == {"0", "1"}
    plain.stop(PLUGIN)
    plain.start_plugin("--topology=numa")
    plain.start_pod("third", 32, _FOR_EVER)
    plain.start_pod("fourth", 32, _FOR_EVER)
    plain.wait_running("third", "fourth")
    assert plain.failed() == []
    assert plain.is_disjoint()
    held = plain.held().values()
    assert sorted(len(ids) for ids in held) == [32, 32, 96, 96]
    assert all(len({each.partition("::")[0] for each in ids}) == 1 for ids in held)


def numa_nodes(plain: PlainNode) -> set[str]:
    """Return the NUMA nodes by which kubelet has recorded groups; -1 is none."""
    record = json.loads((plain.cluster.node.kubelet_folder / "device-plugins" / CHECKPOINT).read_text())
    entries = [one for one in record["Data"]["PodDeviceEntries"] if one["ResourceName"] == RESOURCE]
    return {node for entry in entries for node in entry["DeviceIDs"]}
