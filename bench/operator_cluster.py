"""A large cluster for the operator: a real control plane, KWOK plays nodes and pods, and this program the plugins."""

import asyncio
import math
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.kwok import KWOK, KWOK_LABEL, start_kwok
from cluster_harness.waiting import wait_for
from cta_group_core.names import DEFAULT_RESOURCE_NAME, LABEL_REQUESTS
from cta_group_core.nodes import NodeStatus
from cta_group_operator.adapters.connection import load_connection
from cta_group_operator.adapters.kube import KubeClient
from gpu_cluster import CAPACITY, OURS, h100, held
from many_kubelets import chosen_gpus
from subjects import ROOT

Json = dict[str, Any]
SPACES = 20
GPUS = 8
GROUPS = 8
"""What each pod asks for."""
_AT_ONCE = 24
_ANY = {"operator": "Exists"}
_TOLERATIONS = [{"key": f"node.kubernetes.io/{what}"} | _ANY for what in ("not-ready", "unreachable")]


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is."""

    nodes: int
    workloads: int
    pods: int


@dataclass
class Cluster:
    """The cluster, and who holds what on its nodes."""

    plane: ControlPlane
    client: KubeClient
    size: Size
    folder: Path
    tenants: dict[str, list[dict[str, int]]] = field(default_factory=dict)
    """For each node and GPU, the groups of each pod that is there."""

    def space(self, number: int) -> str:
        """Return the name of a namespace."""
        return f"bench-{number % SPACES:02}"

    async def fill(self) -> None:
        """Make nodes, namespaces, quotas and workloads with all their pods, and wait until they run."""
        names = [f"node-{number:04}" for number in range(self.size.nodes)]
        self.tenants = {name: [{} for _ in range(GPUS)] for name in names}
        await _at_once(self._make_node(name) for name in names)
        await _at_once(self._make_space(number) for number in range(SPACES))
        await _at_once(self._make_workload(number) for number in range(self.size.workloads))
        async with asyncio.timeout(3600):
            while len(pods := await self._running()) < self._wanted:  # noqa: ASYNC110 - only a list tells
                await asyncio.sleep(2)
        for pod in pods:
            self.admit(pod)
        await _at_once(self.publish(name) for name in names)

    def admit(self, pod: Mapping[str, Any]) -> str:
        """Give a pod its groups as its node's plugin does; return the node."""
        node: str = pod["spec"]["nodeName"]
        asked = int(pod["spec"]["containers"][0]["resources"]["limits"][DEFAULT_RESOURCE_NAME])
        free = [CAPACITY - sum(each.values()) for each in self.tenants[node]]
        for gpu in chosen_gpus(free, asked):
            self.tenants[node][gpu][f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"] = min(asked, CAPACITY)
        return node

    def remove(self, namespace: str, name: str) -> str | None:
        """Take back what a pod holds; return its node."""
        for node, gpus in self.tenants.items():
            if sum(each.pop(f"{namespace}/{name}", 0) for each in gpus):
                return node
        return None

    async def publish(self, node: str) -> None:
        """Write the CTANode as its plugin does."""
        gpus = tuple(
            h100(
                node, index, [held(groups, pod.partition("/")[2], pod.partition("/")[0]) for pod, groups in on.items()]
            )
            for index, on in enumerate(self.tenants[node])
        )
        status = NodeStatus(resource_name=DEFAULT_RESOURCE_NAME, simulated=True, gpus=gpus).with_totals()
        await self.client.merge_patch(f"{OURS}/ctanodes/{node}/status", {"status": status.as_api()})

    @property
    def _wanted(self) -> int:
        return self.size.workloads * math.ceil(self.size.pods / self.size.workloads)

    async def _running(self) -> list[Json]:
        found: list[Json] = []
        query = {"limit": "500", "labelSelector": f"{LABEL_REQUESTS}=true", "fieldSelector": "status.phase=Running"}
        while True:
            page = await self.client.get("/api/v1/pods", query)
            found += page["items"]
            if not (more := page["metadata"].get("continue")):
                return found
            query["continue"] = more

    async def _make_node(self, name: str) -> None:
        labels = {"kubernetes.io/hostname": name, KWOK_LABEL: KWOK}
        await self.client.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        amounts = {"cpu": "192", "memory": "2Ti", "pods": "250", DEFAULT_RESOURCE_NAME: str(CAPACITY * GPUS)}
        ready = {"type": "Ready", "status": "True", "reason": "Kwok", "message": "played"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        await self.client.merge_patch(f"/api/v1/nodes/{name}/status", {"status": status})
        kind = {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTANode"}
        await self.client.create(f"{OURS}/ctanodes", {**kind, "metadata": {"name": name}})

    async def _make_space(self, number: int) -> None:
        name = self.space(number)
        await self.client.create("/api/v1/namespaces", {"metadata": {"name": name}})
        spec = {"namespaces": [name], "groups": CAPACITY * GPUS * self.size.nodes}
        kind = {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTAQuota"}
        await self.client.create(f"{OURS}/ctaquotas", {**kind, "metadata": {"name": name}, "spec": spec})

    async def _make_workload(self, number: int) -> None:
        name, labels = f"web-{number:04}", {"app": f"web-{number:04}"}
        spec = {**pod_spec(GROUPS), "nodeName": f"node-{number % self.size.nodes:04}"}
        template = {"metadata": {"labels": {**labels, LABEL_REQUESTS: "true"}}, "spec": spec}
        body = {
            "replicas": math.ceil(self.size.pods / self.size.workloads),
            "selector": {"matchLabels": labels},
            "template": template,
        }
        path = f"/apis/apps/v1/namespaces/{self.space(number)}/deployments"
        await self.client.create(path, {"metadata": {"name": name}, "spec": body})


def pod_spec(groups: int) -> Json:
    """Return a pod as a person writes it."""
    resources = {"limits": {DEFAULT_RESOURCE_NAME: str(groups)}}
    container = {"name": "main", "image": "localhost/none:1", "resources": resources}
    return {"containers": [container], "tolerations": _TOLERATIONS}


async def _at_once(work: Iterable[Awaitable[None]]) -> None:
    """Do everything, some of it at the same time."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(each: Awaitable[None]) -> None:
        async with turns:
            await each

    await asyncio.gather(*map(one, work))


@asynccontextmanager
async def running_cluster(size: Size) -> AsyncIterator[Cluster]:
    """Start a control plane with the project's kinds and KWOK, empty; all of it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="cta-") as folder, ControlPlane.start() as plane:
        start_kwok(plane, Path(folder), starts_pods=True)
        async with KubeClient(load_connection(plane.admin_kubeconfig)) as client:
            for path in sorted((ROOT / "crds").glob("*.yaml")):
                kind = yaml.safe_load(path.read_text())
                plane.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kind)
                plural = kind["spec"]["names"]["plural"]
                wait_for(partial(_is_served, plane, plural), f"the kind {plural}")
            plane.api.create("/api/v1/namespaces", {"metadata": {"name": "cta-group"}})
            yield Cluster(plane, client, size, Path(folder))


def _is_served(plane: ControlPlane, plural: str) -> bool:
    try:
        plane.api.get(f"{OURS}/{plural}")
    except ApiError:
        return False
    return True
