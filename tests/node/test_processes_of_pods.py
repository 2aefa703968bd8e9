"""Which pod a process is in, on a real node: the kernel, the runtime and kubelet's own record must agree about it."""

import json
import sys

from cluster_harness.waiting import wait_for
from cta_group_plugin.adapters.checkpoint import KubeletCheckpoint
from plain_node import PlainNode
from plain_pods import RESOURCE

_LOOK = """
import json, pathlib
from cta_group_plugin.adapters.host_processes import HostProcesses
pids = [int(folder.name) for folder in pathlib.Path("/proc").iterdir() if folder.name.isdecimal()]
seen = HostProcesses().look(pids).values()
print(json.dumps([[one.pod.uid, one.pod.container_id, one.name] for one in seen if one.pod]))
"""


def processes_in_pods(plain: PlainNode) -> set[tuple[str | None, str, str]]:
    """Return pod, container and name of every process that is in a pod, as a program of the node sees them."""
    told = json.loads(plain.cluster.exec_in_node([sys.executable, "-c", _LOOK]))
    return {(uid, container_id, name) for uid, container_id, name in told}


def test_a_process_is_in_a_container_of_kubernetes_and_kubelets_record_says_whose_the_groups_are(
    plain: PlainNode,
) -> None:
    """Container ids as the API has them, groups by UID as the record has them, until a pod ends.

    The kubelet of this node makes no cgroups for pods, so the pod itself is not told: such a process is left open.
    """
    plain.start_supervisor()
    plain.start_plugin(count=1)
    names = ("first", "second")
    for name in names:
        plain.start_pod(name, 32, "exec sleep 3600")
    plain.wait_running(*names)
    uids = [plain.pod(name)["metadata"]["uid"] for name in names]
    containers = [plain.status(name)["containerID"].removeprefix("containerd://") for name in names]
    sleeping = {(None, container, "sleep") for container in containers}
    wait_for(lambda: sleeping <= processes_in_pods(plain), "both programs to be seen")
    record = KubeletCheckpoint(plain.cluster.node.kubelet_folder / "device-plugins", RESOURCE).pod_devices()
    assert record is not None
    assert {one.pod_uid: (one.container, len(one.ids)) for one in record} == dict.fromkeys(uids, ("main", 32))
    plain.delete_pod("first")
    wait_for(lambda: containers[0] not in str(processes_in_pods(plain)), "its program to be gone")
