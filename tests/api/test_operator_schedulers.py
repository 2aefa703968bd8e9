"""Pods of three schedulers on a real API server: the default one, another that honours gates, and one that does not."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from gpu_cluster import GpuCluster, held
from meanwhile import meanwhile
from operator_fixtures import cluster, kinds, operator_kubeconfig
from other_schedulers import NaiveScheduler, second_scheduler
from registered_operator import Registration, registered_operator

__all__ = ["cluster", "kinds", "operator_kubeconfig"]

_NO_ROOM = (
    "Pod was rejected: Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: "
    "code = ResourceExhausted desc = asked for 32 groups, but no GPU has room, which is unexpected"
)


@pytest.fixture
def registration(
    control_plane: ControlPlane,
    kinds: None,  # noqa: ARG001 - must be served first
    operator_kubeconfig: Path,
    tmp_path: Path,
) -> Iterator[Registration]:
    """Run the operator behind its webhook; it is told that scheduler naive does not honour gates."""
    settings = ("operator.gatelessSchedulers={naive}",)
    with registered_operator(control_plane, operator_kubeconfig, tmp_path, settings=settings) as (made, _):
        yield made


@pytest.fixture
def looked_at(registration: Registration) -> Iterator[GpuCluster]:
    """Return a namespace whose pods come to the webhook."""
    made = GpuCluster(registration.api, registration.new_namespace())
    yield made
    made.close()


def deploy(cluster: GpuCluster, name: str, scheduler: str) -> None:
    """Make a Deployment of one pod of 32 as users write it: neither label nor gate."""
    spec = {**cluster.pod_spec(32), "schedulerName": scheduler}
    del spec["schedulingGates"]
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    body = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments"
    cluster.api.create(path, {"metadata": {"name": name}, "spec": body})


def pods_of(cluster: GpuCluster, app: str) -> list[dict[str, Any]]:
    """Return the pods of one Deployment."""
    return [pod for pod in cluster.pods() if pod["metadata"]["labels"].get("app") == app]


def test_three_schedulers(looked_at: GpuCluster, control_plane: ControlPlane, tmp_path: Path) -> None:
    """Two place where a GPU has room. The third binds where none has: refused once, then held back, and told."""
    roomy = looked_at.add_node("roomy", [held(64)])
    scattered = looked_at.add_node("scattered", *[[held(112)]] * 8)
    naive = NaiveScheduler(control_plane.api, "naive", scattered)
    with second_scheduler(control_plane, "batch", tmp_path), naive.running():
        for name in ("default-scheduler", "batch", "naive"):
            deploy(looked_at, name.replace("default-scheduler", "usual"), name)

        def node_of(app: str) -> str | None:
            return next((pod["spec"].get("nodeName") for pod in pods_of(looked_at, app)), None)

        for app in ("usual", "batch"):
            assert wait_for(partial(node_of, app), f"{app} to be bound") == roomy
        wait_for(lambda: node_of("naive") == scattered, "naive to bind its pod")
        (pod,) = pods_of(looked_at, "naive")
        assert not pod["spec"].get("schedulingGates")
        refused: list[str] = []

        def refuse_new() -> None:
            for name in naive.bound[len(refused) :]:
                refuse(looked_at, name)
                refused.append(name)

        told = ("scheduler naive does not honour gates", "2 times in a row", "tried again 20 s after that")
        with meanwhile(refuse_new, pause_seconds=0.1):
            looked_at.wait_told("Deployment", "naive", *told)
        # The second one may be there before the first refusal is heard of, and then both are one attempt.
        assert len(naive.bound) in {2, 3}
    assert naive.refusals == []


def refuse(cluster: GpuCluster, name: str) -> None:
    """Say of a pod what a kubelet says that has no room for it."""
    status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": _NO_ROOM}
    cluster.api.patch(f"/api/v1/namespaces/{cluster.namespace}/pods/{name}/status", {"status": status})
