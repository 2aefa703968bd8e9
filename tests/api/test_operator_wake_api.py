"""Whatever makes pods is woken when the quota that refused them has room again, long before its own back-off ends."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from cluster_harness.api_client import ApiClient
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_POKED
from gpu_cluster import OURS, GpuCluster
from new_namespaces import new_namespace
from operator_fixtures import kinds, operator, operator_kubeconfig
from operator_process import OperatorProcess

__all__ = ["kinds", "operator", "operator_kubeconfig"]

_SPECS: dict[str, dict[str, Any]] = {
    "ReplicaSet": {"replicas": 1},
    "StatefulSet": {"replicas": 1, "serviceName": "web"},
    "DaemonSet": {},
    "Job": {},
}
_EACH, _ALL = 64, 256
_KEY = "requests.nvidia.com/cta-group"
_SPAN = timedelta(seconds=15)
"""From a controller's first refusal to its last; as each wait is twice the one before, it then waits as long again."""
_ATTEMPTS = 3
"""A machine may be so busy that a controller comes by itself before the operator; then it is tried again."""


@contextmanager
def another_cluster(api: ApiClient) -> Iterator[GpuCluster]:
    """Make a namespace with a quota that one pod uses up."""
    made = GpuCluster(api, new_namespace(api, "wake"))
    try:
        made.add_node("one", [])
        made.declare_quota(_ALL)
        made.wait_enforced(_ALL)
        made.create_pod("other", _ALL)
        yield made
    finally:
        made.close()
        api.discard(f"/api/v1/namespaces/{made.namespace}")


def refused_for(cluster: GpuCluster, kind: str) -> timedelta:
    """Return how long it was between the first and the last time that the controller of a kind was refused a pod."""
    selector = f"reason=FailedCreate,involvedObject.kind={kind}"
    items = cluster.api.items(f"/api/v1/namespaces/{cluster.namespace}/events?fieldSelector={selector}")
    first = [datetime.fromisoformat(one["firstTimestamp"]) for one in items]
    last = [datetime.fromisoformat(one["lastTimestamp"]) for one in items]
    return max(last) - min(first) if items else timedelta()


def wait_refused(cluster: GpuCluster, *wanted: str) -> None:
    """Wait until the controllers of some kinds ask so seldom that somebody else has time to wake them.

    Refusals are not counted: a controller on a busy machine leaves some out, and yet doubles its wait.
    """

    def spans() -> dict[str, timedelta]:
        return {kind: refused_for(cluster, kind) for kind in wanted}

    wait_for(lambda: min(spans().values()) >= _SPAN, f"controllers to be refused for {_SPAN}", seen=spans)


def has_pod(cluster: GpuCluster, kind: str) -> bool:
    """Tell whether the controller of a kind has its pod."""
    owners = [owner["kind"] for pod in cluster.pods() for owner in pod["metadata"].get("ownerReferences", ())]
    return kind in owners


def poked(cluster: GpuCluster, how: str, wanted: Collection[str]) -> set[str]:
    """Have controllers refused until they come seldom, make room, and return those that the operator has woken."""
    paths = {kind: cluster.make_controller(kind, kind.lower(), _EACH, **_SPECS[kind]) for kind in sorted(wanted)}
    wait_refused(cluster, *paths)
    if how == "raised":
        cluster.api.patch(f"{OURS}/ctaquotas/{cluster.namespace}", {"spec": {"groups": 2 * _ALL}})
    else:
        cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/other?gracePeriodSeconds=0")
    for kind in paths:
        wait_for(partial(has_pod, cluster, kind), f"the pod of {kind}")
    annotations = {kind: cluster.api.get(path)["metadata"].get("annotations", {}) for kind, path in paths.items()}
    return {kind for kind, told in annotations.items() if ANNOTATION_POKED in told}


@pytest.mark.parametrize("how", ["raised", "freed elsewhere"])
def test_denied_controllers_are_woken(api: ApiClient, operator: OperatorProcess, how: str) -> None:
    """The operator sees to the next pod of each kind after the quota was raised, or another pod gave its groups back.

    One that had come by itself is not woken, so what counts is that each is in some attempt.
    """
    before = operator.metric("cta_group_pokes_total")
    assert before is not None
    left = set(_SPECS)
    for _ in range(_ATTEMPTS):
        with another_cluster(api) as cluster:
            left -= poked(cluster, how, left)
        if not left:
            break
    assert not left
    expected = before + len(_SPECS)
    wait_for(lambda: (operator.metric("cta_group_pokes_total") or 0) >= expected, "the pokes to be counted")


def make_limit_by_hand(cluster: GpuCluster) -> str:
    """Give the CTAQuota room, make a ResourceQuota of people's that has none, and return its path."""
    cluster.api.patch(f"{OURS}/ctaquotas/{cluster.namespace}", {"spec": {"groups": 2 * _ALL}})
    cluster.wait_enforced(2 * _ALL)
    path = f"/api/v1/namespaces/{cluster.namespace}/resourcequotas"
    cluster.api.create(path, {"metadata": {"name": "by-hand"}, "spec": {"hard": {_KEY: str(_ALL)}}})
    wait_for(lambda: cluster.api.get(f"{path}/by-hand").get("status", {}).get("used"), "its count")
    return f"{path}/by-hand"


@pytest.mark.usefixtures("operator")
def test_what_else_refused_and_is_over(api: ApiClient) -> None:
    """Nobody waits long where the CTAQuota was deleted, nor where people raised a limit that they made."""
    left = {"deleted", "raised"}
    for _ in range(_ATTEMPTS):
        with another_cluster(api) as deleted, another_cluster(api) as raised:
            limit = make_limit_by_hand(raised)
            both = {"deleted": deleted, "raised": raised}
            paths = {how: one.make_controller("ReplicaSet", "web", _EACH, replicas=1) for how, one in both.items()}
            for one in both.values():
                wait_refused(one, "ReplicaSet")
            api.delete(f"{OURS}/ctaquotas/{deleted.namespace}")
            api.patch(limit, {"spec": {"hard": {_KEY: str(2 * _ALL)}}})
            for one in both.values():
                wait_for(partial(has_pod, one, "ReplicaSet"), "the pod of the ReplicaSet")
            left -= {how for how, path in paths.items() if ANNOTATION_POKED in annotations_of(api, path)}
        if not left:
            break
    assert not left


def annotations_of(api: ApiClient, path: str) -> dict[str, str]:
    """Return the annotations of an object."""
    found: dict[str, str] = api.get(path)["metadata"].get("annotations", {})
    return found
