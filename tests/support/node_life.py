"""What a fake node's kubelet and plugin say from time to time, and what is said of it when nothing is heard of them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from cluster_harness.api_client import ApiClient
from cluster_harness.waiting import wait_for
from cta_group_core.moments import rfc3339
from gpu_cluster import OURS

_BEAT_SECONDS = 5.0


def confirm(api: ApiClient, node: str) -> None:
    """Confirm the CTANode as it is, as a plugin does to which nothing happens."""
    api.patch(f"{OURS}/ctanodes/{node}/status", {"status": {"confirmedAt": rfc3339(time.time())}})


def _set_ready(api: ApiClient, node: str, status: str) -> None:
    now = rfc3339(time.time())
    ready = {"type": "Ready", "status": status, "reason": "Fake", "message": "fake", "lastHeartbeatTime": now}
    api.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [ready]}})


@contextmanager
def heard_of(api: ApiClient, node: str) -> Iterator[None]:
    """Keep a node ready for the block, as a kubelet does; a node that was lost comes back."""
    over = Event()

    def beat() -> None:
        while not over.wait(_BEAT_SECONDS):
            _set_ready(api, node, "True")

    _set_ready(api, node, "True")
    beating = Thread(target=beat)
    beating.start()
    try:
        yield
    finally:
        over.set()
        beating.join()


def lose(api: ApiClient, node: str) -> None:
    """Have Kubernetes take the node for lost, and wait for its taint."""
    _set_ready(api, node, "Unknown")

    def tainted() -> bool:
        taints = api.get(f"/api/v1/nodes/{node}")["spec"].get("taints", ())
        return any(one["key"] == "node.kubernetes.io/unreachable" for one in taints)

    wait_for(tainted, f"Kubernetes to taint node {node}")
